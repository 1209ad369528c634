/* Lets rank 1 take memory without end, a second after it has started. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *take(void *unused)
{
    (void)unused;
    sleep(1);
    for (;;) {
        char *block = malloc(1 << 20);
        if (block)
            memset(block, 1, 1 << 20);
    }
    return NULL;
}

__attribute__((constructor)) static void start(void)
{
    const char *names[] = { "PMI_RANK", "OMPI_COMM_WORLD_RANK" };
    for (unsigned i = 0; i < 2; i++) {
        const char *rank = getenv(names[i]);
        pthread_t thread;
        if (rank && strcmp(rank, "1") == 0 && pthread_create(&thread, NULL, take, NULL) == 0)
            return;
    }
}
