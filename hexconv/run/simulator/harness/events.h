/* What the kernel told the harness, call by call, with the packets that it had executed by then. */
#ifndef HEXCONV_EVENTS_H
#define HEXCONV_EVENTS_H

#include <stdint.h>

enum { MAX_EVENTS = 1 << 15 };

enum event_kind { EVENT_PART, EVENT_START, EVENT_COPY, EVENT_END, EVENT_WAIT, EVENT_MEMORY };

struct event {
    uint64_t packets;
    uint32_t kind, number; /* of the part, of the queue, or of the arena */
    uint64_t amount;       /* bytes of a copy, groups that a wait leaves, or bytes in use from here on */
};

struct events {
    uint32_t wanted; /* whether to keep any */
    uint32_t count;  /* of all; those beyond MAX_EVENTS are lost */
    struct event event[MAX_EVENTS];
};

/* Before the kernel. */
void events_open(struct events *events);

/* One call, once the counters are paused: every pause of a kernel has one event, so that the two can be matched. */
void events_note(enum event_kind kind, uint32_t number, uint64_t amount);

/* What the kernel calls where a part of its nest begins, as lower/marks.py writes it. */
int32_t hexconv_part(int32_t number);

#endif
