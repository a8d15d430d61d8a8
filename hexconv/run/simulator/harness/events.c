#include "events.h"
#include "counters.h"
#include "threads.h"

static struct events *events;

void events_open(struct events *asked) { events = asked; }

void events_note(enum event_kind kind, uint32_t number, uint64_t amount) {
    if (!events->wanted) return;
    const uint32_t place = events->count++;
    if (place >= MAX_EVENTS) return;
    events->event[place] = (struct event){counters_total().packets, kind, number, amount};
}

int32_t hexconv_part(int32_t number) {
    counters_pause();
    events_note(EVENT_PART, (uint32_t)number, 0);
    threads_yield();
    counters_resume();
    return 0;
}
