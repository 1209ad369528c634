/* Preloaded library: a process that polls for events sleeps until one arrives, at most for a slice. Ranks then share cores as programs
   that block do, and more ranks than cores do not wait for each other's time slices. MPICH polls by epoll_wait. Open MPI polls by poll:
   with a slice of 5 ms, each hop of a message of three frames took about 5 ms more than the network. Why is not known. */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const struct timespec EPOLL_SLICE = { 0, 5 * 1000 * 1000 }, POLL_SLICE = { 0, 50 * 1000 };

int epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
    if (timeout == 0) {
        return (int)syscall(SYS_epoll_pwait2, epfd, events, maxevents, &EPOLL_SLICE, NULL, 0);
    }
    return epoll_pwait(epfd, events, maxevents, timeout, NULL);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    const struct timespec limit = { timeout / 1000, timeout % 1000 * 1000000L };
    return ppoll(fds, count, timeout < 0 ? NULL : timeout == 0 ? &POLL_SLICE : &limit, NULL);
}
