/* Preloaded library: a process that polls for events sleeps until one arrives, at most 50 us. Ranks then share cores as programs that
   block do, and more ranks than cores do not wait for each other's time slices. */
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
    const struct timespec slice = { 0, 50 * 1000 };
    if (timeout == 0) {
        return (int)syscall(SYS_epoll_pwait2, epfd, events, maxevents, &slice, NULL, 0);
    }
    return epoll_pwait(epfd, events, maxevents, timeout, NULL);
}
