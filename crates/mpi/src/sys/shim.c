/* Constants that MPI defines as macros, error handlers, which are variadic, and a handler of crashes: Rust can express none of them. */
#define _GNU_SOURCE
#include <mpi.h>
#include <dlfcn.h>
#include <errno.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The communicator of all ranks, see session.c. */
extern MPI_Comm ombx_all;

const MPI_Datatype ombx_BYTE = MPI_BYTE;
const MPI_Datatype ombx_SIGNED_CHAR = MPI_SIGNED_CHAR;
const MPI_Op ombx_REPLACE = MPI_REPLACE;
const MPI_Op ombx_NO_OP = MPI_NO_OP;
void *const ombx_IN_PLACE = MPI_IN_PLACE;
const int ombx_sizeof_comm = (int)sizeof(MPI_Comm);
const int ombx_sizeof_status = (int)sizeof(MPI_Status);

/* The current task, for error messages. It is written between operations and read when one fails. */
static char ombx_task[256] = "starting";

void ombx_name_task(const char *task) {
    strncpy(ombx_task, task, sizeof ombx_task - 1);
}

/* Rank and host at the start of the sentence about a crash; empty if this process is ending already. */
static char ombx_own_name[300] = "";

/* What is not measured if this process fails now: a line, or an empty text. */
static char ombx_rest[1024] = "";

void ombx_name_rest(const char *line) {
    strncpy(ombx_rest, line, sizeof ombx_rest - 1);
}

static void ombx_print_rest(void) {
    size_t length = strlen(ombx_rest);
    if (length > 0 && write(STDERR_FILENO, ombx_rest, length) > 0) *ombx_rest = 0;
}

static int ombx_exit_code = 6;

static void ombx_exit(void) {
    _exit(ombx_exit_code);
}

/* Ends every rank of the job. MPICH's MPI_Abort can fail an internal assertion when another rank aborts first, and then
   exits with code 1. The atexit handler makes this process exit with the requested code in any case. */
void ombx_abort(int code) {
    *ombx_own_name = 0;
    ombx_print_rest();
    usleep(100000); /* an aborting launcher may discard output that it has not read yet */
    ombx_exit_code = code;
    atexit(ombx_exit);
    MPI_Abort(ombx_all, code);
    ombx_exit();
}

/* Returns advice for an error class, if there is any. Errors in the creation of a window are errors on its communicator. */
static const char *ombx_advice(int code) {
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
#ifdef OPEN_MPI
    if (class == MPI_ERR_WIN) return "; set OMPI_MCA_osc=^ucx in the environment: Open MPI then creates windows over TCP";
#endif
    return "";
}

/* Prints rank, host, task, call and MPI error on one line, and ends the job with exit code 6. */
void ombx_die(const char *call, int code) {
    char text[MPI_MAX_ERROR_STRING + 1] = "", host[256] = "?";
    int length = 0, rank = -1;
    MPI_Error_string(code, text, &length);
    for (char *c = text; *c; c++) {
        if (*c == '\n') *c = ' ';
    }
    if (ombx_all != MPI_COMM_NULL) MPI_Comm_rank(ombx_all, &rank);
    gethostname(host, sizeof host - 1);
    fprintf(stderr, "ombx: rank %d on %s: %s: %s: %s%s\n", rank, host, ombx_task, call, text, ombx_advice(code));
    fflush(stderr);
    ombx_abort(6);
}

static const struct { int number; const char *name; } ombx_crashes[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"}, {SIGFPE, "SIGFPE"}, {SIGABRT, "SIGABRT"},
};

/* Returns the function of MPI that this program has called, or a null pointer. */
static const char *ombx_running_call(void) {
#ifdef __GLIBC__
    void *frames[64];
    Dl_info found;
    for (int at = backtrace(frames, 64) - 1; at >= 0; at--) {
        if (dladdr(frames[at], &found) == 0 || found.dli_sname == NULL) continue;
        if (strncmp(found.dli_sname, "MPI_", 4) == 0) return found.dli_sname;
        if (strncmp(found.dli_sname, "PMPI_", 5) == 0) return found.dli_sname + 1;
    }
#endif
    return NULL;
}

/* Prints rank, host, task, signal and MPI call on one line, and lets the signal end this process. The search for the call is not safe
   in a handler: the alarm ends the process if it hangs. */
static void ombx_crashed(int number) {
    char line[1024] = "";
    const char *name = "a signal", *call;
    for (size_t at = 0; at < sizeof ombx_crashes / sizeof *ombx_crashes; at++) {
        signal(ombx_crashes[at].number, SIG_DFL);
        if (ombx_crashes[at].number == number) name = ombx_crashes[at].name;
    }
    if (*ombx_own_name) {
        signal(SIGALRM, SIG_DFL);
        alarm(5);
        call = ombx_running_call();
        const char *parts[] = {ombx_own_name, ombx_task, ": died of ", name, call ? " in " : "", call ? call : "", "\n"};
        for (size_t at = 0, used = 0; at < sizeof parts / sizeof *parts; at++) {
            size_t length = strlen(parts[at]);
            if (used + length >= sizeof line) break;
            memcpy(line + used, parts[at], length);
            used += length;
        }
        if (write(STDERR_FILENO, line, strlen(line)) > 0) ombx_print_rest();
        usleep(100000); /* as in ombx_abort */
    }
    raise(number);
}

/* Lets a crash of this rank say where it happened. The library has been initialised: its own handlers are replaced. */
void ombx_watch_crashes(void) {
    char host[256] = "?";
    int rank = -1;
    struct sigaction action;
    MPI_Comm_rank(ombx_all, &rank);
    gethostname(host, sizeof host - 1);
    snprintf(ombx_own_name, sizeof ombx_own_name, "ombx: rank %d on %s: ", rank, host);
    ombx_running_call(); /* the first call loads a library */
    memset(&action, 0, sizeof action);
    action.sa_handler = ombx_crashed;
    action.sa_flags = SA_NODEFER | SA_ONSTACK;
    for (size_t at = 0; at < sizeof ombx_crashes / sizeof *ombx_crashes; at++) {
        sigaction(ombx_crashes[at].number, &action, NULL);
    }
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

/* Forks a child that sleeps until it is killed, and returns its process id, or -1 on failure. The child calls only
   async-signal-safe functions, as it must where the parent has threads. */
int ombx_fork_child(void) {
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        /* The kernel kills the child when the rank dies. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent) pause();
        _exit(0);
    }
    return (int)child;
}

/* Kills such a child and waits for its end. Returns 0 if the child was alive until then, else -1. */
int ombx_end_child(int child) {
    int status = 0;
    pid_t ended;
    if (kill(child, SIGKILL) != 0) return -1;
    do {
        ended = waitpid(child, &status, 0);
    } while (ended < 0 && errno == EINTR);
    return ended == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : -1;
}
