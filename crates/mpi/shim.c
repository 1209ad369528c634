/* What Rust cannot say: constants that MPI defines as macros, and error handlers, which are variadic. */
#include <mpi.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

const MPI_Datatype ombx_BYTE = MPI_BYTE;
const MPI_Op ombx_REPLACE = MPI_REPLACE;
void *const ombx_IN_PLACE = MPI_IN_PLACE;
const int ombx_sizeof_comm = (int)sizeof(MPI_Comm);
const int ombx_sizeof_status = (int)sizeof(MPI_Status);

/* What runs now, for messages. Written between operations, read when one fails. */
static char ombx_task[256] = "starting";

void ombx_name_task(const char *task) {
    strncpy(ombx_task, task, sizeof ombx_task - 1);
}

static int ombx_code = 6;

static void ombx_leave(void) {
    _exit(ombx_code);
}

/* Ends every rank of the job. MPICH's MPI_Abort can fail an assertion of its own when another rank is quicker, and would then
   leave with exit code 1: whatever ends this process, it leaves with the code that was asked for. */
void ombx_abort(int code) {
    usleep(100000); /* a launcher that is told to abort may drop what it has not read yet */
    ombx_code = code;
    atexit(ombx_leave);
    MPI_Abort(MPI_COMM_WORLD, code);
    ombx_leave();
}

/* What helps, where that is known; windows are made on a communicator, whose errors these are. */
static const char *ombx_advice(int code) {
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
#ifdef OPEN_MPI
    if (class == MPI_ERR_WIN) return "; over TCP Open MPI makes windows with OMPI_MCA_osc=^ucx in the environment";
#endif
    return "";
}

/* Says on one line which rank, benchmark and MPI error it was, and ends the job with exit code 6. */
void ombx_die(const char *call, int code) {
    char text[MPI_MAX_ERROR_STRING + 1] = "", host[256] = "?";
    int length = 0, rank = -1;
    MPI_Error_string(code, text, &length);
    for (char *c = text; *c; c++) {
        if (*c == '\n') *c = ' ';
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gethostname(host, sizeof host - 1);
    fprintf(stderr, "ombx: rank %d on %s: %s: %s: %s%s\n", rank, host, ombx_task, call, text, ombx_advice(code));
    fflush(stderr);
    ombx_abort(6);
}

static void ombx_comm_error(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    ombx_die("MPI error", *code);
}

static void ombx_win_error(MPI_Win *win, int *code, ...) {
    (void)win;
    ombx_die("MPI error", *code);
}

int ombx_guard_comm(MPI_Comm comm) {
    static MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    int rc = MPI_SUCCESS;
    if (handler == MPI_ERRHANDLER_NULL) rc = MPI_Comm_create_errhandler(ombx_comm_error, &handler);
    return rc == MPI_SUCCESS ? MPI_Comm_set_errhandler(comm, handler) : rc;
}

int ombx_guard_win(MPI_Win win) {
    static MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    int rc = MPI_SUCCESS;
    if (handler == MPI_ERRHANDLER_NULL) rc = MPI_Win_create_errhandler(ombx_win_error, &handler);
    return rc == MPI_SUCCESS ? MPI_Win_set_errhandler(win, handler) : rc;
}

/* A child that shares this process's memory until either writes, and sleeps until it is killed; -1 if there can be none.
   Between fork and its end the child makes system calls only, as it must where the parent has threads. */
int ombx_fork_sleeper(void) {
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        /* No child survives a rank that is killed. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent) pause();
        _exit(0);
    }
    return (int)child;
}

/* Ends such a child and waits until it is gone; 0 if it had lived until now. */
int ombx_end_sleeper(int child) {
    int status = 0;
    pid_t ended;
    if (kill(child, SIGKILL) != 0) return -1;
    do {
        ended = waitpid(child, &status, 0);
    } while (ended < 0 && errno == EINTR);
    return ended == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : -1;
}
