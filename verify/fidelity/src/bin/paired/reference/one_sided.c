/* One-sided loops: each operation under each synchronisation, one access per iteration, or a window of accesses. */
#include "loops.h"

#define AT(BUFFER, W) s.BUFFER + (W) * s.stride, s.elements, s.kind
#define PLACE(W) s.remote + (MPI_Aint)((W) * s.stride)
#define THERE(W) s.peer, PLACE(W), s.elements, s.kind
#define WORDS s.elements
#define put(W) CHECK(MPI_Put(AT(out, W), THERE(W), s.win))
#define get(W) CHECK(MPI_Get(AT(out, W), THERE(W), s.win))
#define acc(W) \
    CHECK(MPI_Accumulate(s.out + (W) * s.stride, WORDS, s.kind, s.peer, PLACE(W), WORDS, s.kind, s.op, s.win))
#define get_acc(W)                                                                                                \
    CHECK(MPI_Get_accumulate(s.out + (W) * s.stride, WORDS, s.kind, s.in + (W) * s.stride, WORDS, s.kind, s.peer, \
                       PLACE(W), WORDS, s.kind, s.op, s.win))
#define fop(W) CHECK(MPI_Fetch_and_op(s.out + (W) * s.stride, s.in + (W) * s.stride, s.kind, s.peer, PLACE(W), s.op, s.win))
#define cas(W)                                                                                                    \
    CHECK(MPI_Compare_and_swap(s.out + (W) * s.stride, s.compare + (W) * s.stride, s.in + (W) * s.stride, s.kind, \
                         s.peer, PLACE(W), s.win))
#define rput(W) CHECK(MPI_Rput(AT(out, W), THERE(W), s.win, &s.requests[W]))
#define rget(W) CHECK(MPI_Rget(AT(out, W), THERE(W), s.win, &s.requests[W]))
#define WAIT CHECK(MPI_Waitall(s.depth, s.requests, MPI_STATUSES_IGNORE))
#define MANY(OPERATION) for (int w = 0; w < s.depth; w++) OPERATION(w)

#define FENCE CHECK(MPI_Win_fence(0, s.win))
#define PSCW_ACCESS(ISSUE) CHECK(MPI_Win_start(s.partner, 0, s.win)); ISSUE; CHECK(MPI_Win_complete(s.win))
#define PSCW_EXPOSE(MEANWHILE) CHECK(MPI_Win_post(s.partner, 0, s.win)); MEANWHILE; CHECK(MPI_Win_wait(s.win))

/* Passive target: one access and its completion. */
#define PASSIVE(NAME, ISSUE)                                                                                                    \
    CHAINED(NAME##_lock, , CHECK(MPI_Win_lock(MPI_LOCK_SHARED, s.peer, 0, s.win)); ISSUE; CHECK(MPI_Win_unlock(s.peer, s.win))) \
    CHAINED(NAME##_lock_exclusive, ,                                                                                            \
            CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, s.peer, 0, s.win)); ISSUE; CHECK(MPI_Win_unlock(s.peer, s.win)))             \
    CHAINED(NAME##_lock_all, , CHECK(MPI_Win_lock_all(0, s.win)); ISSUE; CHECK(MPI_Win_unlock_all(s.win)))                      \
    CHAINED(NAME##_flush, , ISSUE; CHECK(MPI_Win_flush(s.peer, s.win)))                                                         \
    CHAINED(NAME##_flush_local, , ISSUE; CHECK(MPI_Win_flush_local(s.peer, s.win)))

/* Active target: one access in each direction. */
#define LATENCY(NAME, ISSUE)                                                  \
    PASSIVE(NAME, ISSUE)                                                      \
    CHAINED(NAME##_pscw, , PSCW_ACCESS(ISSUE); PSCW_EXPOSE())                 \
    ANSWERED(NAME##_pscw, , PSCW_EXPOSE(); PSCW_ACCESS(ISSUE))                \
    CHAINED(NAME##_fence, , FENCE; ISSUE; FENCE; FENCE)                       \
    ANSWERED(NAME##_fence, , FENCE; FENCE; ISSUE; FENCE)

/* A window of accesses. */
#define BANDWIDTH(NAME, ISSUE)                                                \
    PASSIVE(NAME##_many, ISSUE)                                               \
    CHAINED(NAME##_many_pscw, , PSCW_ACCESS(ISSUE))                           \
    ANSWERED(NAME##_many_pscw, , PSCW_EXPOSE())                               \
    CHAINED(NAME##_many_fence, , FENCE; ISSUE; FENCE)                         \
    ANSWERED(NAME##_many_fence, , FENCE; FENCE)

/* A window of accesses in both directions at once. */
#define BOTH_WAYS(NAME, ISSUE)                                                \
    CHAINED(NAME##_both_pscw, , PSCW_EXPOSE(PSCW_ACCESS(ISSUE)))              \
    ANSWERED(NAME##_both_pscw, , PSCW_EXPOSE(PSCW_ACCESS(ISSUE)))             \
    CHAINED(NAME##_both_fence, , FENCE; ISSUE; FENCE)                         \
    ANSWERED(NAME##_both_fence, , FENCE; ISSUE; FENCE)

LATENCY(put, put(0))
LATENCY(get, get(0))
LATENCY(acc, acc(0))
LATENCY(get_acc, get_acc(0))
LATENCY(fop, fop(0))
LATENCY(cas, cas(0))
PASSIVE(rput, rput(0); WAIT)
PASSIVE(rget, rget(0); WAIT)
BANDWIDTH(put, MANY(put))
BANDWIDTH(get, MANY(get))
BANDWIDTH(acc, MANY(acc))
BANDWIDTH(get_acc, MANY(get_acc))
PASSIVE(rput_many, MANY(rput); WAIT)
PASSIVE(rget_many, MANY(rget); WAIT)
BOTH_WAYS(put, MANY(put))
BOTH_WAYS(get, MANY(get))

/* Accesses to several ranks after a barrier, completed by one flush. The data of a rank are the same for all. */
#define BLOCK_OF(W) (k * s.depth + (W))
#define PUT_FAR(W) \
    CHECK(MPI_Put(AT(out, W), s.partners[k], (MPI_Aint)(BLOCK_OF(W) * s.stride), s.elements, s.kind, s.win))
#define GET_FAR(W) \
    CHECK(MPI_Get(AT(out, BLOCK_OF(W)), s.partners[k], (MPI_Aint)((W) * s.stride), s.elements, s.kind, s.win))
#define TO_ALL(NAME, ACCESS, FLUSH)           \
    AFTER(CHECK(MPI_Barrier(s.team)), NAME, , \
          for (int k = 0; k < s.partner_count; k++) MANY(ACCESS); CHECK(FLUSH(s.win)))
TO_ALL(put_flush_all, PUT_FAR, MPI_Win_flush_all)
TO_ALL(put_flush_local_all, PUT_FAR, MPI_Win_flush_local_all)
TO_ALL(get_flush_all, GET_FAR, MPI_Win_flush_all)
TO_ALL(get_flush_local_all, GET_FAR, MPI_Win_flush_local_all)

/* A fence completes the accesses and opens the next epoch. */
#define FENCE_OF(WINDOW) MPI_Win_fence(0, WINDOW)
TO_ALL(put_far_fence, PUT_FAR, FENCE_OF)
TO_ALL(get_far_fence, GET_FAR, FENCE_OF)

/* Accumulates into the memory of rank 0. */
#define ACC_TO_ROOT(W) \
    CHECK(MPI_Accumulate(s.out + (W) * s.stride, WORDS, s.kind, 0, PLACE(W), WORDS, s.kind, s.op, s.win))
AFTER(CHECK(MPI_Barrier(s.team)), acc_flush_all, , MANY(ACC_TO_ROOT); CHECK(MPI_Win_flush_all(s.win)))
AFTER(CHECK(MPI_Barrier(s.team)), acc_to_root_fence, , MANY(ACC_TO_ROOT); FENCE)

/* The origin of a pair puts, and the target waits in the barrier. */
AFTER(CHECK(MPI_Barrier(s.team)), put_passive, , if (s.rank % 2 == 0) { put(0); CHECK(MPI_Win_flush(s.peer, s.win)); })

/* A window that lives for one iteration. */
AFTER(CHECK(MPI_Barrier(s.team)), window, MPI_Win made,
      CHECK(MPI_Win_create(s.in, s.bytes, 1, MPI_INFO_NULL, s.team, &made)); CHECK(MPI_Win_fence(0, made));
      CHECK(MPI_Put(s.out, s.elements, MPI_BYTE, s.rank, 0, s.elements, MPI_BYTE, made)); CHECK(MPI_Win_fence(0, made));
      CHECK(MPI_Win_free(&made)))

#define PASSIVE_ROWS(NAME)                                                  \
    { #NAME "_lock", fidelity_##NAME##_lock, nothing },                     \
    { #NAME "_lock_exclusive", fidelity_##NAME##_lock_exclusive, nothing }, \
    { #NAME "_lock_all", fidelity_##NAME##_lock_all, nothing },             \
    { #NAME "_flush", fidelity_##NAME##_flush, nothing },                   \
    { #NAME "_flush_local", fidelity_##NAME##_flush_local, nothing }
#define ACTIVE_ROWS(NAME)                                            \
    { #NAME "_pscw", fidelity_##NAME##_pscw, answer_##NAME##_pscw }, \
    { #NAME "_fence", fidelity_##NAME##_fence, answer_##NAME##_fence }
#define ROWS_OF(NAME) PASSIVE_ROWS(NAME), ACTIVE_ROWS(NAME)

const struct row fidelity_one_sided[] = {
    ROWS_OF(put), ROWS_OF(get), ROWS_OF(acc), ROWS_OF(get_acc), ROWS_OF(fop), ROWS_OF(cas),
    PASSIVE_ROWS(rput), PASSIVE_ROWS(rget),
    ROWS_OF(put_many), ROWS_OF(get_many), ROWS_OF(acc_many), ROWS_OF(get_acc_many),
    PASSIVE_ROWS(rput_many), PASSIVE_ROWS(rget_many),
    ACTIVE_ROWS(put_both), ACTIVE_ROWS(get_both),
    { "put_flush_all", fidelity_put_flush_all, nothing },
    { "put_flush_local_all", fidelity_put_flush_local_all, nothing },
    { "get_flush_all", fidelity_get_flush_all, nothing },
    { "get_flush_local_all", fidelity_get_flush_local_all, nothing },
    { "put_far_fence", fidelity_put_far_fence, nothing },
    { "get_far_fence", fidelity_get_far_fence, nothing },
    { "acc_flush_all", fidelity_acc_flush_all, nothing },
    { "acc_to_root_fence", fidelity_acc_to_root_fence, nothing },
    { "put_passive", fidelity_put_passive, nothing },
    { "window", fidelity_window, nothing },
    { NULL, NULL, NULL },
};
