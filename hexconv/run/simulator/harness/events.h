/* The kernel's calls of the harness, each with the packets that the kernel had executed by then. */
#ifndef HEXCONV_EVENTS_H
#define HEXCONV_EVENTS_H

#include <stdint.h>

enum { MAX_EVENTS = 1 << 15 };

enum event_kind { EVENT_PART, EVENT_START, EVENT_COPY, EVENT_END, EVENT_WAIT, EVENT_MEMORY, EVENT_ENGINE };

struct event {
    uint64_t packets;
    uint32_t kind, number; /* the number of the part, of the queue, or of the arena */
    uint64_t amount;       /* bytes of a copy, groups that a wait leaves, bytes in use from here on, or taps of the engine */
};

struct events {
    uint32_t wanted; /* whether to keep any */
    uint32_t count;  /* the number of all events; those beyond MAX_EVENTS are lost */
    struct event event[MAX_EVENTS];
};

/* The harness calls this before the kernel. */
void events_open(struct events *events);

/* Record one call, while the counters are paused: every pause has one event, so that both can be matched. */
void events_note(enum event_kind kind, uint32_t number, uint64_t amount);

/* The kernel calls this where a part of its nest begins; lower/marks.py writes the calls. */
int32_t hexconv_part(int32_t number);

#endif
