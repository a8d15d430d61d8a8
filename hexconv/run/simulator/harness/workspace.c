/* Workspaces of the kernel: stacks of blocks in the heap or in VTCM, surrounded and filled by poison.
 *
 * An arena at rest is poison from end to end (the host filled it, a free fills again), so a fresh block is poison, the
 * gap between two blocks is a guard, and a byte that changed outside of a block shows: next to a block when it is freed,
 * anywhere else when the host looks at the whole arena after the run. The kernel's counters stand still meanwhile.
 */
#include <stdbool.h>
#include <stddef.h>

#include "counters.h"
#include "engine.h"
#include "events.h"
#include "image.h"
#include "threads.h"
#include "workspace.h"

enum { MAX_BLOCKS = 256 };

struct block {
    uint8_t *data;
    uint32_t bytes, room_bytes, serial; /* room: bytes rounded up to granules */
    bool live;
};

struct arena {
    uint32_t top_bytes, used_bytes, blocks;
    struct block block[MAX_BLOCKS];
};

static struct arena arenas[ARENAS];
static uint32_t given_out;

static void complain(enum complaint_kind kind, enum arena_name arena, const struct block *block, uint32_t distance) {
    if (image->complaint.kind != COMPLAINT_NONE) return;
    image->complaint = (struct complaint){kind, arena, block->serial, block->bytes, distance};
}

/* Blocks start and end on granules, and poison's halfwords on even addresses. */
static bool poisoned(const uint8_t *byte) {
    return *byte == (uint8_t)(((uintptr_t)byte & 1) ? POISON_HALFWORD >> 8 : POISON_HALFWORD);
}

UNCOUNTED static void poison(uint8_t *data, uint32_t bytes) {
    const uint64_t word = POISON_HALFWORD * 0x0001000100010001ull;
    for (uint64_t *at = (uint64_t *)data; at < (uint64_t *)(data + bytes); at++) *at = word;
}

UNCOUNTED static bool intact(const uint8_t *data, uint32_t bytes) {
    const uint64_t word = POISON_HALFWORD * 0x0001000100010001ull;
    uint64_t difference = 0;
    for (const uint64_t *at = (const uint64_t *)data; at < (const uint64_t *)(data + bytes); at++) difference |= *at ^ word;
    return difference == 0;
}

UNCOUNTED static void check_guards(enum arena_name name, const struct block *block) {
    const uint32_t guard_bytes = image->arenas[name].guard_bytes;
    const uint8_t *end = block->data + block->bytes;
    const uint32_t behind_bytes = block->room_bytes - block->bytes + guard_bytes;
    for (uint32_t i = 0; i < behind_bytes && ((uintptr_t)(end + i) & 7); i++)
        if (!poisoned(end + i)) return complain(COMPLAINT_WROTE_AFTER, name, block, i);
    const uint32_t skipped = (uint32_t)(-(uintptr_t)end & 7);
    if (!intact(end + skipped, behind_bytes - skipped)) {
        uint32_t i = skipped;
        while (poisoned(end + i)) i++;
        return complain(COMPLAINT_WROTE_AFTER, name, block, i);
    }
    if (intact(block->data - guard_bytes, guard_bytes)) return;
    uint32_t i = 1;
    while (poisoned(block->data - i)) i++;
    complain(COMPLAINT_WROTE_BEFORE, name, block, i);
}

static void *allocate(enum arena_name name, uint64_t bytes) {
    const struct arena_plan *plan = &image->arenas[name];
    struct arena *arena = &arenas[name];
    const uint32_t granule = plan->granule_bytes;
    const uint64_t room = bytes == 0 ? granule : (bytes + granule - 1) & -(uint64_t)granule;
    const bool fits = arena->used_bytes + room <= plan->capacity_bytes && arena->blocks < MAX_BLOCKS &&
                      arena->top_bytes + plan->guard_bytes + room + plan->guard_bytes <= plan->region.bytes;
    if (!fits) {
        const struct block asked = {NULL, (uint32_t)bytes, 0, given_out, false};
        complain(COMPLAINT_EXHAUSTED, name, &asked, arena->used_bytes);
        return NULL;
    }
    struct block *block = &arena->block[arena->blocks++];
    uint8_t *base = (uint8_t *)image + plan->region.offset;
    *block = (struct block){base + arena->top_bytes + plan->guard_bytes, (uint32_t)bytes, (uint32_t)room, given_out++, true};
    arena->top_bytes += plan->guard_bytes + (uint32_t)room;
    arena->used_bytes += (uint32_t)room;
    if (arena->used_bytes > image->peak_bytes[name]) image->peak_bytes[name] = arena->used_bytes;
    return block->data;
}

static int release(enum arena_name name, void *data) {
    struct arena *arena = &arenas[name];
    const uint32_t guard_bytes = image->arenas[name].guard_bytes;
    for (uint32_t i = arena->blocks; i-- > 0;) {
        struct block *block = &arena->block[i];
        if (!block->live || block->data != data) continue;
        check_guards(name, block);
        poison(block->data, block->room_bytes);
        block->live = false;
        arena->used_bytes -= block->room_bytes;
        while (arena->blocks > 0 && !arena->block[arena->blocks - 1].live)
            arena->top_bytes -= guard_bytes + arena->block[--arena->blocks].room_bytes;
        return 0;
    }
    complain(COMPLAINT_UNKNOWN_FREE, name, &(struct block){.serial = given_out}, 0);
    return -1;
}

/* Memory 0 of the device is the heap, memory 1 its VTCM (lower/vtcm.py). */
static enum arena_name arena_of(int device_id) { return device_id == VTCM_DEVICE_ID ? ARENA_VTCM : ARENA_HEAP; }

static void *allocate_workspace(int device_type, int device_id, uint64_t bytes, int type_code, int type_bits) {
    counters_pause();
    (void)device_type, (void)type_code, (void)type_bits;
    void *data = allocate(arena_of(device_id), bytes);
    events_note(EVENT_MEMORY, arena_of(device_id), arenas[arena_of(device_id)].used_bytes);
    threads_yield();
    counters_resume();
    return data;
}

static int free_workspace(int device_type, int device_id, void *data) {
    counters_pause();
    (void)device_type;
    threads_meet(); /* the caches of all threads are there at the same time */
    const int status = release(arena_of(device_id), data);
    events_note(EVENT_MEMORY, arena_of(device_id), arenas[arena_of(device_id)].used_bytes);
    threads_yield();
    counters_resume();
    return status;
}

static uint32_t places[MAX_BLOCKS]; /* of the workspaces of VTCM on a device */

/* Behind what is placed in the first line with room, or at the first line of which nothing takes a byte. */
static uint32_t next_place(const struct arena *arena, const bool *placed, uint32_t room) {
    for (uint32_t line = 0;; line += VTCM_LINE_BYTES) {
        uint32_t end = line, last = 0; /* of this line, of all */
        for (uint32_t i = 0; i < arena->blocks; i++) {
            const uint32_t own = places[i] + arena->block[i].room_bytes;
            if (!placed[i]) continue;
            if (own > last) last = own;
            if (places[i] < line + VTCM_LINE_BYTES && own > end) end = own;
        }
        if (room > VTCM_LINE_BYTES ? last <= line : end + room <= line + VTCM_LINE_BYTES) return end;
    }
}

/* Place all workspaces, the largest first. */
UNCOUNTED static void place_all(const struct arena *arena) {
    bool placed[MAX_BLOCKS] = {false};
    for (uint32_t turn = 0; turn < arena->blocks; turn++) {
        const struct block *next = NULL;
        for (uint32_t i = 0; i < arena->blocks; i++) {
            const struct block *block = &arena->block[i];
            if (!placed[i] && block->live && (!next || block->room_bytes > next->room_bytes)) next = block;
        }
        if (!next) break;
        const uint32_t number = (uint32_t)(next - arena->block);
        places[number] = next_place(arena, placed, next->room_bytes);
        placed[number] = true;
        if (places[number] + next->room_bytes > image->engine.placed_bytes)
            image->engine.placed_bytes = places[number] + next->room_bytes;
    }
}

UNCOUNTED uint32_t workspace_place(const void *data, uint32_t bytes) {
    static uint32_t placed_workspaces, placed_used_bytes; /* what there was when they were placed */
    const struct arena *arena = &arenas[ARENA_VTCM];
    if (placed_workspaces != given_out || placed_used_bytes != arena->used_bytes) place_all(arena);
    placed_workspaces = given_out, placed_used_bytes = arena->used_bytes;
    for (uint32_t i = arena->blocks; i-- > 0;) {
        const struct block *block = &arena->block[i];
        const uint32_t offset = (uint32_t)((const uint8_t *)data - block->data);
        if (block->live && offset < block->bytes && bytes <= block->bytes - offset) return places[i] + offset;
    }
    return NO_PLACE;
}

/* TVM's code calls through these two pointers. */
void *(*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = allocate_workspace;
int (*__TVMBackendFreeWorkspace)(int, int, void *) = free_workspace;
