/* Nothing is counted on the host, and nothing is noted. */
#include "../counters.h"
#include "../events.h"
#include "../threads.h"

void counters_resume(void) {}
void counters_pause(void) {}

void events_note(enum event_kind kind, uint32_t number, uint64_t amount) {
    (void)kind, (void)number, (void)amount;
}

/* No thread copies either: kernels with several threads on this machine have no asynchronous copies. */
int threads_current(void) { return ALONE; }
uint32_t threads_count(void) { return 0; }
void threads_yield(void) {}
void threads_waited(void) {}
