/* The copy engine: every copy happens between its start and the wait for it, at a moment of the engine's choosing.
 *
 * As early as possible, as late as possible, or at random: at its start or at any later call of the engine. Until then the
 * target is poison, so that a kernel that reads too early reads poison. Nothing else may write the target: it is looked at
 * when the copy is performed, and again, with the source, which must not change, when the copy is waited for.
 *
 * The host builds this file too, for runs on the machine itself.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "copies.h"
#include "counters.h"
#include "events.h"
#include "threads.h"

enum { POISON_EVEN = 0xCC, POISON_ODD = 0xFF }; /* as in image.h */
#ifdef __hexagon__
enum { MAX_PIECES = 1 << 17 };
#else
enum { MAX_PIECES = 1 << 22 }; /* a host has memory for more, and takes none until they are used */
#endif
enum { NONE = -1 };
enum { CHANCES = 4 }; /* a random moment: at each call of the engine a copy has one chance in four */
enum { SHORT_BYTES = 128 }; /* rows below this waste bursts of a DMA engine */

struct piece {
    uint8_t *target;
    const uint8_t *source;
    uint64_t content; /* a hash of the source when the copy started */
    uint32_t bytes, group;
    int32_t rows, target_step, source_step;
    int32_t next;
    bool performed;
};

struct queue {
    int32_t first, last;        /* pieces under way, the oldest first */
    uint32_t started, finished; /* numbers of groups */
    bool open;
    uint32_t in_group;           /* pieces that the last group has so far */
    struct piece newest, second; /* the last two of them */
};

static struct copies *copies;
static struct piece pieces[MAX_PIECES];
static struct queue queues[MAX_THREADS + 1][MAX_QUEUES]; /* each thread has queues of its own */
static int32_t unused;   /* the list of pieces that were in use and are free again */
static int32_t untouched; /* the pieces from this number on were never in use */
static uint64_t random_state;

static void complain(enum copy_fault fault, int32_t queue, uint32_t group, uint32_t bytes) {
    if (copies->fault != COPIES_FINE) return;
    copies->fault = fault;
    copies->queue = (uint32_t)queue;
    copies->group = group;
    copies->bytes = bytes;
}

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled". */
static bool chance(void) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 0x2545F4914F6CDD1Dull >> 32) % CHANCES == 0;
}

/* FNV-1a, row by row. */
UNCOUNTED static uint64_t hash(const uint8_t *data, int32_t step, const struct piece *piece) {
    uint64_t value = 0xcbf29ce484222325ull;
    for (int32_t row = 0; row < piece->rows; row++)
        for (uint32_t i = 0; i < piece->bytes; i++)
            value = (value ^ data[(ptrdiff_t)row * step + i]) * 0x100000001b3ull;
    return value;
}

static uint8_t poison_at(const uint8_t *place) { return (uintptr_t)place & 1 ? POISON_ODD : POISON_EVEN; }

UNCOUNTED static bool is_poison(const uint8_t *data, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++)
        if (data[i] != poison_at(data + i)) return false;
    return true;
}

static uint8_t *target_row(const struct piece *piece, int32_t row) {
    return piece->target + (ptrdiff_t)row * piece->target_step;
}

UNCOUNTED static void perform(struct piece *piece, int32_t queue) {
    if (piece->performed) return;
    for (int32_t row = 0; row < piece->rows; row++) {
        uint8_t *target = target_row(piece, row);
        const uint8_t *source = piece->source + (ptrdiff_t)row * piece->source_step;
        if (!is_poison(target, piece->bytes)) complain(COPIES_TARGET_CHANGED, queue, piece->group, piece->bytes);
        for (uint32_t i = 0; i < piece->bytes; i++) target[i] = source[i];
    }
    piece->performed = true;
}

UNCOUNTED static void perform_some(void) {
    if (copies->moment != COPIES_RANDOM) return;
    for (uint32_t thread = 0; thread <= threads_count(); thread++)
        for (int32_t queue = 0; queue < MAX_QUEUES; queue++)
            for (int32_t i = queues[thread][queue].first; i != NONE; i = pieces[i].next)
                if (!pieces[i].performed && chance()) perform(&pieces[i], queue);
}

static struct queue *own(int32_t number) { return &queues[threads_current()][number]; }

/* Wait for the oldest piece of a queue: perform it if it has not been, and check it. */
UNCOUNTED static void finish(int32_t number) {
    struct queue *queue = own(number);
    const int32_t index = queue->first;
    struct piece *piece = &pieces[index];
    perform(piece, number);
    if (hash(piece->source, piece->source_step, piece) != piece->content)
        complain(COPIES_SOURCE_CHANGED, number, piece->group, piece->bytes);
    else if (hash(piece->target, piece->target_step, piece) != piece->content)
        complain(COPIES_TARGET_CHANGED, number, piece->group, piece->bytes);
    queue->first = piece->next;
    if (queue->first == NONE) queue->last = NONE;
    piece->next = unused;
    unused = index;
}

static struct piece *append(int32_t number) {
    if (unused == NONE && untouched == MAX_PIECES) return NULL;
    const int32_t index = unused != NONE ? unused : untouched++;
    if (unused != NONE) unused = pieces[index].next;
    struct queue *queue = own(number);
    if (queue->last == NONE) queue->first = index;
    else pieces[queue->last].next = index;
    queue->last = index;
    pieces[index].next = NONE;
    return &pieces[index];
}

static bool knows(int32_t queue) {
    if (queue >= 0 && queue < MAX_QUEUES) return true;
    complain(COPIES_UNKNOWN_QUEUE, queue, 0, 0);
    return false;
}

static void note_size(uint32_t bytes, int32_t rows) {
    uint32_t place = 0;
    copies->pieces++;
    copies->pieces_2d += rows > 1;
    while (place < copies->sizes && copies->size_bytes[place] != bytes) place++;
    if (place == MAX_SIZES) return;
    if (place == copies->sizes) copies->size_bytes[copies->sizes++] = bytes;
    copies->size_pieces[place]++;
}

/* Whether a piece lies behind another by these distances. */
static bool lies_behind(const struct piece *piece, const struct piece *other, ptrdiff_t target, ptrdiff_t source) {
    return piece->target - other->target == target && piece->source - other->source == source;
}

/* Whether a descriptor could hold a piece of one row beside those before it: the row goes on where the newest one's ended,
 * or is as long as its rows, at their distance. */
static bool could_be_joined(const struct piece *piece, const struct queue *queue) {
    const struct piece *newest = &queue->newest, *second = &queue->second;
    if (queue->in_group == 0 || piece->rows > 1) return false;
    if (newest->rows == 1 && lies_behind(piece, newest, newest->bytes, newest->bytes)) return true;
    if (piece->bytes != newest->bytes) return false;
    if (newest->rows > 1)
        return lies_behind(piece, newest, (ptrdiff_t)newest->rows * newest->target_step,
                           (ptrdiff_t)newest->rows * newest->source_step);
    return queue->in_group > 1 && second->rows == 1 && second->bytes == piece->bytes &&
           lies_behind(piece, newest, newest->target - second->target, newest->source - second->source);
}

static void note_short(const struct piece *piece, struct queue *queue) {
    if (piece->bytes < SHORT_BYTES && could_be_joined(piece, queue)) copies->short_pieces++;
    queue->second = queue->newest;
    queue->newest = *piece;
    queue->in_group++;
}

UNCOUNTED static void start_piece(int32_t queue, struct piece asked) {
    struct piece *piece = append(queue);
    if (piece == NULL) return complain(COPIES_TOO_MANY, queue, own(queue)->started, asked.bytes);
    asked.group = own(queue)->started;
    asked.next = NONE;
    asked.content = hash(asked.source, asked.source_step, &asked);
    *piece = asked;
    for (int32_t row = 0; row < asked.rows; row++)
        for (uint32_t i = 0; i < asked.bytes; i++) {
            uint8_t *place = target_row(&asked, row) + i;
            *place = poison_at(place);
        }
    copies->moved_bytes[queue] += (uint64_t)asked.bytes * (uint64_t)asked.rows;
    note_size(asked.bytes, asked.rows);
    note_short(&asked, own(queue));
    if (copies->moment == COPIES_EARLY || (copies->moment == COPIES_RANDOM && chance())) perform(piece, queue);
}

static void start_group(int32_t number) {
    struct queue *queue = own(number);
    const uint32_t in_flight = ++queue->started - queue->finished;
    queue->open = true;
    queue->in_group = 0;
    if (in_flight > copies->most_in_flight[number]) copies->most_in_flight[number] = in_flight;
}

int32_t hexconv_copy(int32_t queue, void *target, const void *source, int32_t bytes) {
    return hexconv_copy_rows(queue, target, source, bytes, 1, 0, 0);
}

static inline __attribute__((always_inline)) void start_rows(int32_t queue, const struct piece *asked) {
    events_note(EVENT_COPY, (uint32_t)queue, (uint64_t)asked->bytes * (uint64_t)asked->rows);
    if (knows(queue)) {
        const bool alone = !own(queue)->open;
        if (alone) start_group(queue);
        start_piece(queue, *asked);
        if (alone) own(queue)->open = false;
    }
    threads_yield();
}

/* Copy rows of equal size at equal distances, by one descriptor of two dimensions. */
int32_t hexconv_copy_rows(int32_t queue, void *target, const void *source, int32_t bytes, int32_t rows,
                          int32_t target_step, int32_t source_step) {
    counters_pause();
    start_rows(queue, &(struct piece){.target = target, .source = source, .bytes = (uint32_t)bytes, .rows = rows,
                                      .target_step = target_step, .source_step = source_step});
    counters_resume();
    return 0;
}

static inline __attribute__((always_inline)) void begin_group(int32_t queue) {
    events_note(EVENT_START, (uint32_t)queue, 0);
    perform_some();
    if (knows(queue)) start_group(queue);
    threads_yield();
}

int32_t hexconv_start_group(int32_t queue) {
    counters_pause();
    begin_group(queue);
    counters_resume();
    return 0;
}

int32_t hexconv_end_group(int32_t queue) {
    counters_pause();
    events_note(EVENT_END, (uint32_t)queue, 0);
    if (knows(queue)) own(queue)->open = false;
    threads_yield();
    counters_resume();
    return 0;
}

static inline __attribute__((always_inline)) void wait_for(int32_t number, int32_t in_flight) {
    events_note(EVENT_WAIT, (uint32_t)number, (uint32_t)in_flight);
    threads_waited();
    perform_some();
    if (knows(number)) {
        struct queue *queue = own(number);
        while (queue->started - queue->finished > (uint32_t)in_flight) {
            queue->finished++;
            while (queue->first != NONE && pieces[queue->first].group == queue->finished) finish(number);
        }
    }
    threads_yield();
}

int32_t hexconv_wait(int32_t number, int32_t in_flight) {
    counters_pause();
    wait_for(number, in_flight);
    counters_resume();
    return 0;
}

void copies_start_group(int32_t queue) { begin_group(queue); }

void copies_start_rows(int32_t queue, const struct copied *copy) {
    start_rows(queue, &(struct piece){.target = copy->target, .source = copy->source, .bytes = copy->bytes, .rows = copy->rows,
                                      .target_step = copy->target_step, .source_step = copy->source_step});
}

void copies_wait(int32_t queue, int32_t in_flight) { wait_for(queue, in_flight); }

void copies_open(struct copies *asked) {
    copies = asked;
    random_state = 0x9E3779B97F4A7C15ull ^ asked->seed;
    unused = NONE;
    untouched = 0;
    for (int32_t thread = 0; thread <= MAX_THREADS; thread++)
        for (int32_t i = 0; i < MAX_QUEUES; i++) queues[thread][i] = (struct queue){.first = NONE, .last = NONE};
}

void copies_close(void) {
    for (int32_t thread = 0; thread <= MAX_THREADS; thread++)
        for (int32_t i = 0; i < MAX_QUEUES; i++) {
            const struct queue *queue = &queues[thread][i];
            if (queue->started != queue->finished)
                complain(COPIES_NEVER_WAITED_FOR, i, queue->finished + 1, queue->started - queue->finished);
        }
}
