/* Messages between two ranks. */
#include "plain.h"

static MPI_Request requests[2 * WINDOW];

#define SEND(BYTES) MPI_Send(out, BYTES, MPI_CHAR, peer, 1, MPI_COMM_WORLD)
#define RECEIVE(BYTES) MPI_Recv(in, BYTES, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
#define SENDS(STRIDE, FIRST)                \
    for (int w = 0; w < WINDOW; w++)        \
    MPI_Isend(out + (size_t)w * (STRIDE), bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &requests[(FIRST) + w])
#define RECEIVES(STRIDE)                    \
    for (int w = 0; w < WINDOW; w++)        \
    MPI_Irecv(in + (size_t)w * (STRIDE), bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &requests[w])
#define WAIT(COUNT) MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE)

static void latency(void)
{
    if (rank == 0)
        TIMED(SEND(bytes); RECEIVE(bytes));
    else
        ANSWERED(RECEIVE(bytes); SEND(bytes));
}

/* A window of messages in one buffer, as osu_bw. */
static void bw(void)
{
    if (rank == 0)
        TIMED(SENDS(0, 0); WAIT(WINDOW); RECEIVE(0));
    else
        ANSWERED(RECEIVES(0); WAIT(WINDOW); SEND(0));
}

/* A window of messages, each in a buffer of its own. */
static void bw_multiple(void)
{
    size_t stride = bytes > 64 ? bytes : 64;
    if (rank == 0)
        TIMED(SENDS(stride, 0); WAIT(WINDOW); RECEIVE(0));
    else
        ANSWERED(RECEIVES(stride); WAIT(WINDOW); SEND(0));
}

static void bibw(void)
{
    if (rank == 0)
        TIMED(RECEIVES(0); SENDS(0, WINDOW); WAIT(2 * WINDOW));
    else
        ANSWERED(RECEIVES(0); SENDS(0, WINDOW); WAIT(2 * WINDOW));
}

#define ONE(REQUEST) MPI_Start(&(REQUEST)); MPI_Wait(&(REQUEST), MPI_STATUS_IGNORE)

static void latency_persistent(void)
{
    MPI_Request send, receive;
    MPI_Send_init(out, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &send);
    MPI_Recv_init(in, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &receive);
    if (rank == 0)
        TIMED(ONE(send); ONE(receive));
    else
        ANSWERED(ONE(receive); ONE(send));
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
}

int main(int argc, char **argv)
{
    const struct operation operations[] = {
        { "latency", latency }, { "bw", bw }, { "bw_multiple", bw_multiple }, { "bibw", bibw },
        { "latency_persistent", latency_persistent }, { NULL, NULL },
    };
    return plain_main(argc, argv, operations, 0);
}
