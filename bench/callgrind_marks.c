/* What a measured program tells Callgrind: which part of it is to be counted, and what that is called. */
#include <valgrind/callgrind.h>

void counting_begin(void)
{
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

void counting_end(const char *name)
{
    CALLGRIND_DUMP_STATS_AT(name);
    CALLGRIND_STOP_INSTRUMENTATION;
}
