/* Library (LD_PRELOAD) that moves clocks back at every hundredth reading in a process, three times in all. The time of day moves
 * by an hour, any other clock by a second. OMBX_CLOCKS selects the clocks: `realtime` or `all`. With `faster` the monotonic clock runs
 * faster by 2 % from a second after its first reading on. */
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
    if (which != NULL && strcmp(which, "faster") == 0) {
        static long long first;
        long long now = time->tv_sec * 1000000000ll + time->tv_nsec, none = 0;
        if (clock != CLOCK_MONOTONIC) return code;
        __atomic_compare_exchange_n(&first, &none, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        long long late = now - first - 1000000000ll;
        if (late > 0) now += late / 50;
        time->tv_sec = now / 1000000000ll;
        time->tv_nsec = now % 1000000000ll;
        return code;
    }
    if (which != NULL && (clock == CLOCK_REALTIME || strcmp(which, "all") == 0)) {
        long steps = __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) / 100;
        if (steps > 3) steps = 3;
        time->tv_sec -= (clock == CLOCK_REALTIME ? 3600 : 1) * steps;
    }
    return code;
}
