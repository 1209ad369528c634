/* Library (LD_PRELOAD) with which each process can start OMBX_THREADS threads and no more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    static long started;
    const char *most = getenv("OMBX_THREADS");
    if (most != NULL && __atomic_add_fetch(&started, 1, __ATOMIC_RELAXED) > atol(most)) return EAGAIN;
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, run, argument);
}
