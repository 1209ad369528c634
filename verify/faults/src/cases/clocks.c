/* Every hundredth time that a process asks a clock, the clock has stepped back, the time of day by an hour and any other by a
 * second, three times in all. OMBX_CLOCKS says which: realtime, or all. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    static const char *which;
    static long asked;
    if (real == NULL) {
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
        which = getenv("OMBX_CLOCKS");
    }
    int code = real(clock, time);
    if (which != NULL && (clock == CLOCK_REALTIME || strcmp(which, "all") == 0)) {
        long steps = __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) / 100;
        if (steps > 3) steps = 3;
        time->tv_sec -= (clock == CLOCK_REALTIME ? 3600 : 1) * steps;
    }
    return code;
}
