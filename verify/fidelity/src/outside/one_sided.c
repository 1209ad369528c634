/* Accesses of rank 0 to the memory of rank 1. */
#include "plain.h"

static MPI_Win win;
static MPI_Group partner;

#define PUT MPI_Put(out, bytes, MPI_CHAR, peer, 0, bytes, MPI_CHAR, win)
#define GET MPI_Get(in, bytes, MPI_CHAR, peer, 0, bytes, MPI_CHAR, win)
#define ACC MPI_Accumulate(out, bytes, MPI_CHAR, peer, 0, bytes, MPI_CHAR, MPI_SUM, win)
#define FOP MPI_Fetch_and_op(out, in, MPI_CHAR, peer, 0, MPI_SUM, win)
#define PUTS                                \
    for (int w = 0; w < WINDOW; w++)        \
    MPI_Put(out + (size_t)w * bytes, bytes, MPI_CHAR, peer, (MPI_Aint)w * bytes, bytes, MPI_CHAR, win)

/* Passive target: rank 1 waits in a barrier. */
#define PASSIVE(NAME, BEFORE, WORK, AFTER)  \
    static void NAME(void)                  \
    {                                       \
        if (rank == 0) {                    \
            BEFORE;                         \
            TIMED(WORK);                    \
            AFTER;                          \
        }                                   \
        MPI_Barrier(MPI_COMM_WORLD);        \
    }
#define LOCK MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win)
#define UNLOCK MPI_Win_unlock(peer, win)
#define FLUSH MPI_Win_flush(peer, win)

PASSIVE(put_flush, LOCK, PUT; FLUSH, UNLOCK)
PASSIVE(put_flush_local, LOCK, PUT; MPI_Win_flush_local(peer, win), UNLOCK)
PASSIVE(put_lock, , LOCK; PUT; UNLOCK, )
PASSIVE(put_lock_all, , MPI_Win_lock_all(0, win); PUT; MPI_Win_unlock_all(win), )
PASSIVE(puts_flush, LOCK, PUTS; FLUSH, UNLOCK)
PASSIVE(get_flush, LOCK, GET; FLUSH, UNLOCK)
PASSIVE(acc_flush, LOCK, ACC; FLUSH, UNLOCK)
PASSIVE(fop_flush, LOCK, FOP; FLUSH, UNLOCK)

/* Active target: an access in each direction. */
#define FENCE MPI_Win_fence(0, win)
static void put_fence(void)
{
    FENCE;
    if (rank == 0)
        TIMED(FENCE; PUT; FENCE; FENCE);
    else
        ANSWERED(FENCE; FENCE; PUT; FENCE);
}

#define ACCESS MPI_Win_start(partner, 0, win); PUT; MPI_Win_complete(win)
#define EXPOSE MPI_Win_post(partner, 0, win); MPI_Win_wait(win)
static void put_pscw(void)
{
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &peer, &partner);
    if (rank == 0)
        TIMED(ACCESS; EXPOSE);
    else
        ANSWERED(EXPOSE; ACCESS);
    MPI_Group_free(&partner);
    MPI_Group_free(&all);
}

#define IN_WINDOW(NAME)                                                                                             \
    static void in_window_##NAME(void)                                                                              \
    {                                                                                                               \
        char *memory;                                                                                               \
        MPI_Win_allocate((MPI_Aint)bytes * WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);                \
        memset(memory, 'c', (size_t)bytes * WINDOW);                                                                \
        MPI_Barrier(MPI_COMM_WORLD);                                                                                \
        NAME();                                                                                                     \
        MPI_Win_free(&win);                                                                                         \
    }
IN_WINDOW(put_flush) IN_WINDOW(put_flush_local) IN_WINDOW(put_lock) IN_WINDOW(put_lock_all) IN_WINDOW(put_fence)
IN_WINDOW(put_pscw) IN_WINDOW(puts_flush) IN_WINDOW(get_flush) IN_WINDOW(acc_flush) IN_WINDOW(fop_flush)

#define OPERATION(NAME) { #NAME, in_window_##NAME }

int main(int argc, char **argv)
{
    const struct operation operations[] = {
        OPERATION(put_flush), OPERATION(put_flush_local), OPERATION(put_lock), OPERATION(put_lock_all), OPERATION(put_fence),
        OPERATION(put_pscw), OPERATION(puts_flush), OPERATION(get_flush), OPERATION(acc_flush), OPERATION(fop_flush),
        { NULL, NULL },
    };
    return plain_main(argc, argv, operations, 0);
}
