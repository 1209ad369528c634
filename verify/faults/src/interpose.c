/* Library between ombx and MPI (LD_PRELOAD). datatypes.c precedes this file, and system_calls.c follows. OMBX_FAULTS has its
 * rules, separated by `;`, each a list of `key=value` separated by `,`. Cases write them.
 *
 *   call=NAME   name of the call without `MPI_`, or `*` for every call
 *   do=WHAT     flip      a bit of one byte that is delivered
 *               stale     what a receive or a blocking collective delivers is lost: its buffer, or the first block, keeps what it had
 *               lost      MPI_Put is not made
 *               swap      MPI_Compare_and_swap swaps whatever the window has
 *               short     half of a message is sent
 *               trunc     the receive buffer is half as long as the message
 *               error:N   the call returns this error class instead of being made
 *               raise:N   the same, through the error handler of the communicator or window
 *               less      Query_thread reports that only one thread may call MPI
 *               exit:N abort segv kill stop hang    the rank does so; `hang` sleeps in the call
 *   way=in|out  of flip: received data (default) or sent data
 *   rank=N      on this rank only                bytes=N   only messages, or blocks of a collective, of this size
 *   nth=N       from the n-th call, from 1       times=N   at most this many times
 *   worker=1    only in calls of a thread other than the main thread
 *   slot=N of=M the N-th, from 0, of every M matching calls
 *   block=N     the block of a collective, or the part of a partitioned message, in which a byte is flipped
 *   byte=N      the byte that is flipped: of the payload of the message or block, without gaps
 *   memory=1    `byte` is counted in the memory of the message or block, with gaps
 *   end=1       after the call, not instead of it
 *
 * The number of each rule that acts, and the rank, are appended to the file OMBX_FAULTS_LOG once.
 */
#define RULES 64
#define MOST 8192 /* operations in flight, and copies */
#define MOST_PERSISTENT (1 << 18) /* requests; cases with a cold cache have one for each copy of the buffer */
#define ANY (-1)

struct rule {
    char call[40], what[16];
    long argument, rank, bytes, nth, times, slot, of, block, byte, memory, out, end, worker;
    long met, acted;
};

static struct rule rules[RULES];
static int rule_count, own_rank;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int error_class(const char *name) {
    if (strcmp(name, "ERR_OTHER") == 0) return MPI_ERR_OTHER;
    if (strcmp(name, "ERR_NO_MEM") == 0) return MPI_ERR_NO_MEM;
    if (strcmp(name, "ERR_INTERN") == 0) return MPI_ERR_INTERN;
    if (strcmp(name, "ERR_TRUNCATE") == 0) return MPI_ERR_TRUNCATE;
    if (strcmp(name, "ERR_RMA_SYNC") == 0) return MPI_ERR_RMA_SYNC;
    return atoi(name);
}

static void set(struct rule *rule, const char *key, char *value) {
    if (strcmp(key, "call") == 0) { snprintf(rule->call, sizeof rule->call, "%s", value); return; }
    if (strcmp(key, "do") == 0) {
        char *argument = strchr(value, ':');
        if (argument != NULL) *argument++ = 0;
        snprintf(rule->what, sizeof rule->what, "%s", value);
        int is_error = strcmp(value, "error") == 0 || strcmp(value, "raise") == 0;
        if (argument != NULL) rule->argument = is_error ? error_class(argument) : atol(argument);
        return;
    }
    if (strcmp(key, "way") == 0) { rule->out = strcmp(value, "out") == 0; return; }
    struct { const char *key; long *at; } numbers[] = {
        {"rank", &rule->rank}, {"bytes", &rule->bytes}, {"nth", &rule->nth}, {"times", &rule->times}, {"slot", &rule->slot},
        {"of", &rule->of}, {"block", &rule->block}, {"byte", &rule->byte}, {"memory", &rule->memory}, {"end", &rule->end},
        {"worker", &rule->worker},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].key) == 0) { *numbers[i].at = atol(value); return; }
    }
    fprintf(stderr, "interpose: no such key: %s\n", key);
    abort();
}

__attribute__((constructor)) static void read_rules(void) {
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    const char *wish = getenv("OMBX_FAULTS");
    own_rank = rank != NULL ? atoi(rank) : ANY;
    if (wish == NULL) return;
    char *text = strdup(wish), *after_rule;
    for (char *one = strtok_r(text, ";", &after_rule); one != NULL; one = strtok_r(NULL, ";", &after_rule)) {
        if (rule_count == RULES) abort();
        struct rule *rule = &rules[rule_count++];
        rule->rank = rule->bytes = rule->times = ANY;
        rule->nth = rule->of = 1;
        char *after_pair;
        for (char *pair = strtok_r(one, ",", &after_pair); pair != NULL; pair = strtok_r(NULL, ",", &after_pair)) {
            char *value = strchr(pair, '=');
            if (value == NULL) abort();
            *value++ = 0;
            set(rule, pair, value);
        }
    }
    free(text);
}

static void tell(const struct rule *rule) {
    char line[32];
    const char *path = getenv("OMBX_FAULTS_LOG");
    int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (file < 0) return;
    int length = snprintf(line, sizeof line, "%d %d\n", (int)(rule - rules), own_rank);
    if (write(file, line, (size_t)length) != length) abort();
    close(file);
}

/* Returns whether a rule acts now. Counts every matching call, so that all ranks have the same count. */
static int acts(struct rule *rule, const char *call, long bytes) {
    if (strcmp(rule->call, "*") != 0 && strcmp(rule->call, call) != 0) return 0;
    if (rule->rank != ANY && rule->rank != own_rank) return 0;
    if (rule->bytes != ANY && rule->bytes != bytes) return 0;
    if (rule->worker && syscall(SYS_gettid) == getpid()) return 0;
    pthread_mutex_lock(&lock);
    long met = rule->met++;
    int now = met % rule->of == rule->slot && met + 1 >= rule->nth && (rule->times == ANY || rule->acted < rule->times);
    rule->acted += now;
    if (now && rule->acted == 1) tell(rule);
    pthread_mutex_unlock(&lock);
    return now;
}

static int is(const struct rule *rule, const char *what) { return strcmp(rule->what, what) == 0; }

static void end_rank(const struct rule *rule) {
    if (is(rule, "exit")) exit((int)rule->argument);
    if (is(rule, "abort")) abort();
    if (is(rule, "segv")) { signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); }
    if (is(rule, "kill")) raise(SIGKILL);
    if (is(rule, "stop")) raise(SIGSTOP);
    if (is(rule, "hang")) for (;;) pause();
}

/* Returns whether a rule changes data or arguments, where the call is made. */
static int is_of_call(const struct rule *rule) {
    const char *all[] = {"flip", "stale", "lost", "swap", "short", "trunc", "less"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) if (is(rule, all[i])) return 1;
    return 0;
}

/* Performs a rule instead of a call or after it. Returns its error, or success. */
static int trouble(const char *call, long bytes, const MPI_Comm *comm, const MPI_Win *win, int end) {
    for (int i = 0; i < rule_count; i++) {
        struct rule *rule = &rules[i];
        if (is_of_call(rule) || rule->end != end) continue;
        if (!acts(rule, call, bytes)) continue;
        if (is(rule, "raise") && comm != NULL) PMPI_Comm_call_errhandler(*comm, (int)rule->argument);
        if (is(rule, "raise") && win != NULL) PMPI_Win_call_errhandler(*win, (int)rule->argument);
        if (is(rule, "raise") || is(rule, "error")) return (int)rule->argument;
        end_rank(rule);
    }
    return MPI_SUCCESS;
}

static int does(const char *what, const char *call, long bytes) {
    int found = 0;
    for (int i = 0; i < rule_count; i++) found |= is(&rules[i], what) && acts(&rules[i], call, bytes);
    return found;
}

/* Returns the rule that flips a byte in the data of a call, or NULL. */
static const struct rule *flipped(const char *call, long bytes, int out) {
    const struct rule *found = NULL;
    for (int i = 0; i < rule_count; i++) {
        if (is(&rules[i], "flip") && rules[i].out == out && acts(&rules[i], call, bytes)) found = &rules[i];
    }
    return found;
}

/* The byte in a gap that a rule flips, and its value after the last flip. */
static __thread unsigned char *gap, left;

/* Flips a bit. A byte in a gap stays flipped, because no message overwrites it and a second flip would restore it. */
static void flip(unsigned char *byte) {
    if (byte == NULL || (byte == gap && *byte == left)) return;
    *byte ^= 0x10;
    if (byte == gap) left = *byte;
}

/* Returns the address of the byte that a rule flips in data that arrives, or NULL. */
static unsigned char *hit(const char *call, struct data data, long bytes) {
    if (!arrives(data)) return NULL;
    const struct rule *rule = flipped(call, bytes, 0);
    if (rule == NULL) return NULL;
    unsigned char *byte =
        (unsigned char *)start_of(data, rule->block) + place_of(type_of(data, rule->block), rule->byte, rule->memory);
    if (rule->memory && byte != gap) {
        gap = byte;
        left = (unsigned char)~*byte;
    }
    return byte;
}

/* Memory of the first block of a buffer whose new contents will be lost. */
struct kept { void *copy, *memory; size_t bytes; };

/* Keeps the memory, if a rule loses what arrives. */
static struct kept kept(const char *call, struct data data, long bytes) {
    struct kept kept = {NULL, NULL, 0};
    if (!arrives(data) || !does("stale", call, bytes)) return kept;
    struct span span = span_of(data.counts != NULL ? data.counts[0] : data.count, type_of(data, 0));
    kept.memory = (char *)start_of(data, 0) + span.low;
    kept.bytes = (size_t)span.bytes;
    kept.copy = allocated(span.bytes);
    memcpy(kept.copy, kept.memory, kept.bytes);
    return kept;
}

static int restored(struct kept kept, int code) {
    if (kept.copy != NULL) memcpy(kept.memory, kept.copy, kept.bytes);
    free(kept.copy);
    return code;
}

/* Data of this thread that arrives when a request completes or a window is synchronised. */
static __thread struct { MPI_Request request; MPI_Win win; unsigned char *byte; } pending[MOST];
static __thread int pendings;

static void remember(MPI_Request request, MPI_Win win, unsigned char *byte) {
    if (byte == NULL) return;
    if (pendings == MOST) abort();
    pending[pendings].request = request;
    pending[pendings].win = win;
    pending[pendings++].byte = byte;
}

static void completed(MPI_Request request) {
    if (request == MPI_REQUEST_NULL) return;
    for (int i = pendings - 1; i >= 0; i--) {
        if (pending[i].request != request) continue;
        flip(pending[i].byte);
        pending[i] = pending[--pendings];
    }
}

static int synchronised(MPI_Win win, int code) {
    for (int i = pendings - 1; i >= 0; i--) {
        if (pending[i].win != win) continue;
        flip(pending[i].byte);
        pending[i] = pending[--pendings];
    }
    return code;
}

/* A receive that is cancelled delivers nothing. */
static int cancelled(MPI_Request *request) {
    for (int i = pendings - 1; i >= 0; i--) if (pending[i].request == *request) pending[i] = pending[--pendings];
    return PMPI_Cancel(request);
}

int MPI_Cancel(MPI_Request *request) { return cancelled(request); }

/* Changed data that is sent instead: a copy per address and size. A buffer is reused only after its last operation is complete,
 * so that the copy may be overwritten. It is never freed. */
static struct { const void *origin; unsigned char *copy; long bytes; } copies[MOST];

/* Returns a copy of memory in which one byte is flipped. */
static unsigned char *changed(const void *origin, long bytes, long byte) {
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < MOST && copies[i].origin != NULL && (copies[i].origin != origin || copies[i].bytes != bytes)) i++;
    if (i == MOST) abort();
    if (copies[i].origin == NULL) {
        copies[i].origin = origin;
        copies[i].bytes = bytes;
        copies[i].copy = allocated(bytes);
    }
    memcpy(copies[i].copy, origin, (size_t)bytes);
    flip(copies[i].copy + byte);
    pthread_mutex_unlock(&lock);
    return copies[i].copy;
}

/* Returns what a call sends: the data itself, or a copy in which one byte is flipped. */
static const void *given(const char *call, long bytes, const void *origin, long count, MPI_Datatype type) {
    const struct rule *rule = flipped(call, bytes, 1);
    if (rule == NULL || origin == NULL || origin == MPI_IN_PLACE) return origin;
    struct span span = span_of(count, type);
    long byte = place_of(type, rule->byte, rule->memory) - span.low;
    return changed((const char *)origin + span.low, span.bytes, byte) - span.low;
}

/* Persistent requests by handle. */
static struct { MPI_Request request; char call[40]; struct data data; long bytes; } persistent[MOST_PERSISTENT];
static int persistents;

static int made(const char *call, const MPI_Request *request, struct data data, long bytes, int code) {
    if (code != MPI_SUCCESS || !arrives(data)) return code;
    if (persistents == MOST_PERSISTENT) abort();
    persistent[persistents].request = *request;
    snprintf(persistent[persistents].call, sizeof persistent->call, "%s", call);
    persistent[persistents].data = data;
    persistent[persistents++].bytes = bytes;
    return code;
}

static void started(MPI_Request request) {
    for (int i = 0; i < persistents; i++) {
        if (persistent[i].request != request) continue;
        remember(request, MPI_WIN_NULL, hit(persistent[i].call, persistent[i].data, persistent[i].bytes));
    }
}

static int arrived(const char *call, struct data data, long bytes, int code) {
    if (code == MPI_SUCCESS) flip(hit(call, data, bytes));
    return code;
}

static int will_arrive(const char *call, MPI_Request request, struct data data, long bytes, int code) {
    if (code == MPI_SUCCESS) remember(request, MPI_WIN_NULL, hit(call, data, bytes));
    return code;
}

/* Wraps a call: rules before it, the call, rules after it. Rules may match `bytes`. */
#define CALL(name, bytes, comm, win, made) \
    do { \
        int code = trouble(name, bytes, comm, win, 0); \
        if (code == MPI_SUCCESS) code = made; \
        int late = code == MPI_SUCCESS ? trouble(name, bytes, comm, win, 1) : code; \
        return late; \
    } while (0)

/* Calls without received data. */
#define LIST(...) __VA_ARGS__
#define PLAIN(name, parameters, arguments, comm, win) \
    int MPI_##name parameters { CALL(#name, 0, comm, win, PMPI_##name arguments); }

PLAIN(Barrier, (MPI_Comm comm), (comm), &comm, NULL)
PLAIN(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made), &comm, NULL)
PLAIN(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made), &comm, NULL)
PLAIN(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made), (comm, type, key, info, made), &comm, NULL)
PLAIN(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made), (comm, group, tag, made), &comm, NULL)
PLAIN(Comm_free, (MPI_Comm *comm), (comm), comm, NULL)
PLAIN(Cart_create, (MPI_Comm comm, int n, const int dims[], const int periods[], int reorder, MPI_Comm *made),
      (comm, n, dims, periods, reorder, made), &comm, NULL)
PLAIN(Dist_graph_create_adjacent,
      (MPI_Comm comm, int in, const int sources[], const int from[], int out, const int destinations[], const int to[],
       MPI_Info info, int reorder, MPI_Comm *made),
      (comm, in, sources, from, out, destinations, to, info, reorder, made), &comm, NULL)
PLAIN(Comm_group, (MPI_Comm comm, MPI_Group *group), (comm, group), &comm, NULL)
PLAIN(Group_incl, (MPI_Group group, int n, const int ranks[], MPI_Group *made), (group, n, ranks, made), NULL, NULL)
PLAIN(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler), NULL, NULL)
PLAIN(Win_set_errhandler, (MPI_Win win, MPI_Errhandler handler), (win, handler), NULL, NULL)
PLAIN(Info_create, (MPI_Info *info), (info), NULL, NULL)
PLAIN(Alloc_mem, (MPI_Aint size, MPI_Info info, void *made), (size, info, made), NULL, NULL)
PLAIN(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status), (source, tag, comm, flag, status), &comm, NULL)
PLAIN(Win_create, (void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
      (base, size, unit, info, comm, win), &comm, NULL)
PLAIN(Win_allocate, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
      (size, unit, info, comm, base, win), &comm, NULL)
PLAIN(Win_allocate_shared, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
      (size, unit, info, comm, base, win), &comm, NULL)
PLAIN(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win), &comm, NULL)
PLAIN(Win_attach, (MPI_Win win, void *base, MPI_Aint size), (win, base, size), NULL, &win)
PLAIN(Win_detach, (MPI_Win win, const void *base), (win, base), NULL, &win)
PLAIN(Win_free, (MPI_Win *win), (win), NULL, win)
PLAIN(Win_get_attr, (MPI_Win win, int key, void *value, int *flag), (win, key, value, flag), NULL, &win)
PLAIN(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win), NULL, &win)
PLAIN(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win), NULL, &win)
PLAIN(Win_wait, (MPI_Win win), (win), NULL, &win)
PLAIN(Win_lock, (int type, int rank, int assert, MPI_Win win), (type, rank, assert, win), NULL, &win)
PLAIN(Win_lock_all, (int assert, MPI_Win win), (assert, win), NULL, &win)
PLAIN(Finalize, (void), (), NULL, NULL)

/* Synchronisations of windows: fetched data has arrived. */
#define SYNCHRONISES(name, parameters, arguments) \
    int MPI_##name parameters { CALL(#name, 0, NULL, &win, synchronised(win, PMPI_##name arguments)); }

SYNCHRONISES(Win_fence, (int assert, MPI_Win win), (assert, win))
SYNCHRONISES(Win_complete, (MPI_Win win), (win))
SYNCHRONISES(Win_unlock, (int rank, MPI_Win win), (rank, win))
SYNCHRONISES(Win_unlock_all, (MPI_Win win), (win))
SYNCHRONISES(Win_flush, (int rank, MPI_Win win), (rank, win))
SYNCHRONISES(Win_flush_local, (int rank, MPI_Win win), (rank, win))

int MPI_Init(int *argc, char ***argv) { CALL("Init", 0, NULL, NULL, PMPI_Init(argc, argv)); }
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    CALL("Init_thread", 0, NULL, NULL, PMPI_Init_thread(argc, argv, required, provided));
}
int MPI_Query_thread(int *provided) {
    int code = PMPI_Query_thread(provided);
    if (does("less", "Query_thread", 0)) *provided = MPI_THREAD_SINGLE;
    return code;
}

/* Two-sided calls, with `int` and `MPI_Count`. */
#define TWO_SIDED(c, Count) \
    int MPI_Send##c(const void *from, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm) { \
        long bytes = size_of(count, type); \
        if (does("short", "Send", bytes)) count /= 2; \
        CALL("Send", bytes, &comm, NULL, PMPI_Send##c(given("Send", bytes, from, count, type), count, type, to, tag, comm)); \
    } \
    int MPI_Isend##c(const void *from, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) { \
        long bytes = size_of(count, type); \
        if (does("short", "Isend", bytes)) count /= 2; \
        CALL("Isend", bytes, &comm, NULL, PMPI_Isend##c(given("Isend", bytes, from, count, type), count, type, to, tag, comm, request)); \
    } \
    static int recv_one##c(void *to, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) { \
        long bytes = size_of(count, type); \
        if (does("trunc", "Recv", bytes)) count /= 2; \
        struct kept before = kept("Recv", one(to, count, type), bytes); \
        int code = restored(before, PMPI_Recv##c(to, count, type, from, tag, comm, status)); \
        return arrived("Recv", one(to, count, type), bytes, code); \
    } \
    int MPI_Recv##c(void *to, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) { \
        CALL("Recv", size_of(count, type), &comm, NULL, recv_one##c(to, count, type, from, tag, comm, status)); \
    } \
    static int irecv##c(void *to, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) { \
        long bytes = size_of(count, type); \
        if (does("trunc", "Irecv", bytes)) count /= 2; \
        int code = PMPI_Irecv##c(to, count, type, from, tag, comm, request); \
        if (code == MPI_SUCCESS) remember(*request, MPI_WIN_NULL, hit("Irecv", one(to, count, type), bytes)); \
        return code; \
    } \
    int MPI_Irecv##c(void *to, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) { \
        CALL("Irecv", size_of(count, type), &comm, NULL, irecv##c(to, count, type, from, tag, comm, request)); \
    }

TWO_SIDED(, int)
#if MPI_VERSION >= 4
TWO_SIDED(_c, MPI_Count)
#endif

int MPI_Sendrecv(const void *from, int sent, MPI_Datatype type, int peer, int tag, void *to, int count, MPI_Datatype kind,
                 int source, int its_tag, MPI_Comm comm, MPI_Status *status) {
    long bytes = size_of(count, kind);
    CALL("Sendrecv", bytes, &comm, NULL,
         arrived("Sendrecv", one(to, count, kind), bytes,
                 PMPI_Sendrecv(given("Sendrecv", size_of(sent, type), from, sent, type), sent, type, peer, tag, to, count, kind,
                               source, its_tag, comm, status)));
}

/* The other modes of sends. */
#define MODE(send, start) \
    int MPI_##send(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) { \
        long bytes = size_of(count, type); \
        CALL(#send, bytes, &comm, NULL, PMPI_##send(given(#send, bytes, from, count, type), count, type, to, tag, comm)); \
    } \
    int MPI_##start(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) { \
        long bytes = size_of(count, type); \
        CALL(#start, bytes, &comm, NULL, PMPI_##start(given(#start, bytes, from, count, type), count, type, to, tag, comm, request)); \
    }

MODE(Ssend, Issend)
MODE(Bsend, Ibsend)
MODE(Rsend, Irsend)

#define PERSISTENT_TWO_SIDED(c, Count) \
    int MPI_Recv_init##c(void *to, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) { \
        long bytes = size_of(count, type); \
        if (does("trunc", "Recv_init", bytes)) count /= 2; \
        CALL("Recv_init", bytes, &comm, NULL, \
             made("Recv_init", request, one(to, count, type), bytes, \
                  PMPI_Recv_init##c(to, count, type, from, tag, comm, request))); \
    } \
    int MPI_Send_init##c(const void *from, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) { \
        CALL("Send_init", size_of(count, type), &comm, NULL, PMPI_Send_init##c(from, count, type, to, tag, comm, request)); \
    }

PERSISTENT_TWO_SIDED(, int)
#if MPI_VERSION >= 4
PERSISTENT_TWO_SIDED(_c, MPI_Count)
#endif

static int start(MPI_Request *request) {
    int code = PMPI_Start(request);
    if (code == MPI_SUCCESS) started(*request);
    return code;
}

static int startall(int count, MPI_Request requests[]) {
    int code = PMPI_Startall(count, requests);
    for (int i = 0; code == MPI_SUCCESS && i < count; i++) started(requests[i]);
    return code;
}

int MPI_Start(MPI_Request *request) { CALL("Start", 0, NULL, NULL, start(request)); }
int MPI_Startall(int count, MPI_Request requests[]) { CALL("Startall", 0, NULL, NULL, startall(count, requests)); }

static int request_free(MPI_Request *request) {
    /* From here on, the library may use the handle for another request. */
    for (int i = persistents - 1; i >= 0; i--) {
        if (persistent[i].request == *request) persistent[i] = persistent[--persistents];
    }
    return PMPI_Request_free(request);
}

int MPI_Request_free(MPI_Request *request) { CALL("Request_free", 0, NULL, NULL, request_free(request)); }

#if MPI_VERSION >= 4
int MPI_Psend_init(const void *from, int parts, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Info info,
                   MPI_Request *request) {
    CALL("Psend_init", size_of(count, type), &comm, NULL,
         PMPI_Psend_init(from, parts, count, type, to, tag, comm, info, request));
}
int MPI_Precv_init(void *to, int parts, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Info info,
                   MPI_Request *request) {
    long bytes = size_of(count, type);
    CALL("Precv_init", bytes, &comm, NULL,
         made("Precv_init", request, equal(to, count, type), bytes,
              PMPI_Precv_init(to, parts, count, type, from, tag, comm, info, request)));
}
int MPI_Pready(int part, MPI_Request request) { CALL("Pready", 0, NULL, NULL, PMPI_Pready(part, request)); }
#endif

/* Completion. */
static int wait_one(MPI_Request *request, MPI_Status *status) {
    MPI_Request was = *request;
    int code = PMPI_Wait(request, status);
    if (code == MPI_SUCCESS) completed(was);
    return code;
}

static int test_one(MPI_Request *request, int *flag, MPI_Status *status) {
    MPI_Request was = *request;
    int code = PMPI_Test(request, flag, status);
    if (code == MPI_SUCCESS && *flag) completed(was);
    return code;
}

static int wait_all(int count, MPI_Request requests[], MPI_Status statuses[]) {
    MPI_Request was[count > 0 ? count : 1];
    memcpy(was, requests, sizeof *was * (size_t)count);
    int code = PMPI_Waitall(count, requests, statuses);
    for (int i = 0; code == MPI_SUCCESS && i < count; i++) completed(was[i]);
    return code;
}

static int test_all(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    MPI_Request was[count > 0 ? count : 1];
    memcpy(was, requests, sizeof *was * (size_t)count);
    int code = PMPI_Testall(count, requests, flag, statuses);
    for (int i = 0; code == MPI_SUCCESS && *flag && i < count; i++) completed(was[i]);
    return code;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) { CALL("Wait", 0, NULL, NULL, wait_one(request, status)); }
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) { CALL("Test", 0, NULL, NULL, test_one(request, flag, status)); }
int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    CALL("Waitall", 0, NULL, NULL, wait_all(count, requests, statuses));
}
int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    CALL("Testall", 0, NULL, NULL, test_all(count, requests, flag, statuses));
}

/* One-sided. What an operation returns has arrived when its window is synchronised. This also holds for MPI_Rget: MPICH 4.0 completes its
 * request before it writes data with gaps, which it does in the synchronisation. */
static int returns(const char *call, MPI_Win win, struct data data, long bytes, int code) {
    if (code == MPI_SUCCESS) remember(MPI_REQUEST_NULL, win, hit(call, data, bytes));
    return code;
}

#define AT int target, MPI_Aint at, int target_count, MPI_Datatype target_type
#define AT_ARGUMENTS target, at, target_count, target_type
#define ONE_SIDED(call) long bytes = size_of(count, type); CALL(#call, bytes, NULL, &win,

int MPI_Put(const void *from, int count, MPI_Datatype type, AT, MPI_Win win) {
    if (does("lost", "Put", size_of(count, type))) return MPI_SUCCESS;
    ONE_SIDED(Put) PMPI_Put(given("Put", bytes, from, count, type), count, type, AT_ARGUMENTS, win));
}
int MPI_Rput(const void *from, int count, MPI_Datatype type, AT, MPI_Win win, MPI_Request *request) {
    ONE_SIDED(Rput) PMPI_Rput(given("Rput", bytes, from, count, type), count, type, AT_ARGUMENTS, win, request));
}
int MPI_Get(void *to, int count, MPI_Datatype type, AT, MPI_Win win) {
    ONE_SIDED(Get) returns("Get", win, one(to, count, type), bytes, PMPI_Get(to, count, type, AT_ARGUMENTS, win)));
}
int MPI_Rget(void *to, int count, MPI_Datatype type, AT, MPI_Win win, MPI_Request *request) {
    ONE_SIDED(Rget) returns("Rget", win, one(to, count, type), bytes, PMPI_Rget(to, count, type, AT_ARGUMENTS, win, request)));
}
int MPI_Accumulate(const void *from, int count, MPI_Datatype type, AT, MPI_Op op, MPI_Win win) {
    ONE_SIDED(Accumulate) PMPI_Accumulate(given("Accumulate", bytes, from, count, type), count, type, AT_ARGUMENTS, op, win));
}
int MPI_Raccumulate(const void *from, int count, MPI_Datatype type, AT, MPI_Op op, MPI_Win win, MPI_Request *request) {
    ONE_SIDED(Raccumulate)
        PMPI_Raccumulate(given("Raccumulate", bytes, from, count, type), count, type, AT_ARGUMENTS, op, win, request));
}
int MPI_Get_accumulate(const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type, AT, MPI_Op op,
                       MPI_Win win) {
    ONE_SIDED(Get_accumulate)
        returns("Get_accumulate", win, one(to, to_count, to_type), bytes,
                PMPI_Get_accumulate(given("Get_accumulate", bytes, from, count, type), count, type, to, to_count, to_type,
                                    AT_ARGUMENTS, op, win)));
}
int MPI_Fetch_and_op(const void *from, void *to, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op, MPI_Win win) {
    int count = 1;
    ONE_SIDED(Fetch_and_op)
        returns("Fetch_and_op", win, one(to, count, type), bytes,
                PMPI_Fetch_and_op(given("Fetch_and_op", bytes, from, count, type), to, type, target, at, op, win)));
}
int MPI_Compare_and_swap(const void *from, const void *compare, void *to, MPI_Datatype type, int target, MPI_Aint at, MPI_Win win) {
    int count = 1;
    if (does("swap", "Compare_and_swap", size_of(count, type))) {
        return PMPI_Fetch_and_op(from, to, type, target, at, MPI_REPLACE, win);
    }
    ONE_SIDED(Compare_and_swap)
        returns("Compare_and_swap", win, one(to, count, type), bytes,
                PMPI_Compare_and_swap(given("Compare_and_swap", bytes, from, count, type), compare, to, type, target, at, win)));
}
#if MPI_VERSION >= 4
#define AT_C int target, MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type
int MPI_Put_c(const void *from, MPI_Count count, MPI_Datatype type, AT_C, MPI_Win win) {
    ONE_SIDED(Put) PMPI_Put_c(given("Put", bytes, from, count, type), count, type, AT_ARGUMENTS, win));
}
int MPI_Get_c(void *to, MPI_Count count, MPI_Datatype type, AT_C, MPI_Win win) {
    ONE_SIDED(Get) returns("Get", win, one(to, count, type), bytes, PMPI_Get_c(to, count, type, AT_ARGUMENTS, win)));
}
int MPI_Rput_c(const void *from, MPI_Count count, MPI_Datatype type, AT_C, MPI_Win win, MPI_Request *request) {
    ONE_SIDED(Rput) PMPI_Rput_c(given("Rput", bytes, from, count, type), count, type, AT_ARGUMENTS, win, request));
}
int MPI_Rget_c(void *to, MPI_Count count, MPI_Datatype type, AT_C, MPI_Win win, MPI_Request *request) {
    ONE_SIDED(Rget) returns("Rget", win, one(to, count, type), bytes, PMPI_Rget_c(to, count, type, AT_ARGUMENTS, win, request)));
}
int MPI_Accumulate_c(const void *from, MPI_Count count, MPI_Datatype type, AT_C, MPI_Op op, MPI_Win win) {
    ONE_SIDED(Accumulate) PMPI_Accumulate_c(given("Accumulate", bytes, from, count, type), count, type, AT_ARGUMENTS, op, win));
}
int MPI_Get_accumulate_c(const void *from, MPI_Count count, MPI_Datatype type, void *to, MPI_Count to_count, MPI_Datatype to_type,
                         AT_C, MPI_Op op, MPI_Win win) {
    ONE_SIDED(Get_accumulate)
        returns("Get_accumulate", win, one(to, to_count, to_type), bytes,
                PMPI_Get_accumulate_c(given("Get_accumulate", bytes, from, count, type), count, type, to, to_count, to_type,
                                      AT_ARGUMENTS, op, win)));
}
#endif

/* Collectives, in three forms: what they are called, parameters and arguments, where data arrives, bytes of a block. */
#if MPI_VERSION >= 4
#define INIT(name) MPI_##name##_init
#define PINIT(name) PMPI_##name##_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#define PINIT(name) PMPIX_##name##_init
#endif

static int rank_of(MPI_Comm comm) {
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

static int is_rank(int rank, MPI_Comm comm) { return rank_of(comm) == rank; }

/* Bytes of all blocks, as many as there are ranks. */
static long all_of(const int counts[], MPI_Datatype type, MPI_Comm comm) {
    int ranks;
    long sum = 0;
    PMPI_Comm_size(comm, &ranks);
    for (int i = 0; i < ranks; i++) sum += size_of(counts[i], type);
    return sum;
}

int MPI_Sendrecv_replace(void *message, int count, MPI_Datatype type, int peer, int tag, int source, int its_tag, MPI_Comm comm,
                         MPI_Status *status) {
    long bytes = size_of(count, type);
    CALL("Sendrecv_replace", bytes, &comm, NULL,
         arrived("Sendrecv_replace", one(message, count, type), bytes,
                 PMPI_Sendrecv_replace(message, count, type, peer, tag, source, its_tag, comm, status)));
}

int MPI_Reduce_local(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op) {
    long bytes = size_of(count, type);
    CALL("Reduce_local", bytes, NULL, NULL,
         arrived("Reduce_local", one(to, count, type), bytes, PMPI_Reduce_local(from, to, count, type, op)));
}

#ifdef INIT
#define PERSISTENT(name, parameters, arguments, data, bytes) \
    int INIT(name)(LIST parameters, MPI_Info info, MPI_Request *request) { \
        CALL(#name "_init", bytes, &comm, NULL, \
             made(#name "_init", request, data, bytes, PINIT(name)(LIST arguments, info, request))); \
    }
#else
#define PERSISTENT(name, parameters, arguments, data, bytes)
#endif

#define COLLECTIVE(name, nonblocking, parameters, arguments, data, bytes) \
    int MPI_##name(LIST parameters) { \
        struct kept before = kept(#name, data, bytes); \
        CALL(#name, bytes, &comm, NULL, arrived(#name, data, bytes, restored(before, PMPI_##name(LIST arguments)))); \
    } \
    static int late_##name(LIST parameters, MPI_Request *request) { \
        int code = PMPI_##nonblocking(LIST arguments, request); \
        return will_arrive(#nonblocking, *request, data, bytes, code); \
    } \
    int MPI_##nonblocking(LIST parameters, MPI_Request *request) { \
        CALL(#nonblocking, bytes, &comm, NULL, late_##name(LIST arguments, request)); \
    } \
    PERSISTENT(name, parameters, arguments, data, bytes)

#define FROM const void *from, int sent, MPI_Datatype type
#define FROM_LIST const void *from, const int sent[], const int sent_at[], MPI_Datatype type
#define TO void *to, int count, MPI_Datatype kind
#define TO_LIST void *to, const int counts[], const int at[], MPI_Datatype kind
#define SUM const void *from, void *to, int count, MPI_Datatype kind, MPI_Op op

COLLECTIVE(Allgather, Iallgather, (FROM, TO, MPI_Comm comm), (from, sent, type, to, count, kind, comm), equal(to, count, kind), size_of(count, kind))
COLLECTIVE(Allgatherv, Iallgatherv, (FROM, TO_LIST, MPI_Comm comm), (from, sent, type, to, counts, at, kind, comm), listed(to, counts, at, kind), size_of(counts[0], kind))
COLLECTIVE(Allreduce, Iallreduce, (SUM, MPI_Comm comm), (from, to, count, kind, op, comm), one(to, count, kind), size_of(count, kind))
COLLECTIVE(Alltoall, Ialltoall, (FROM, TO, MPI_Comm comm), (from, sent, type, to, count, kind, comm), equal(to, count, kind), size_of(count, kind))
COLLECTIVE(Alltoallv, Ialltoallv, (FROM_LIST, TO_LIST, MPI_Comm comm), (from, sent, sent_at, type, to, counts, at, kind, comm), listed(to, counts, at, kind), size_of(counts[0], kind))
COLLECTIVE(Alltoallw, Ialltoallw,
           (const void *from, const int sent[], const int sent_at[], const MPI_Datatype types[], void *to, const int counts[],
            const int at[], const MPI_Datatype kinds[], MPI_Comm comm),
           (from, sent, sent_at, types, to, counts, at, kinds, comm), typed(to, counts, at, NULL, kinds), size_of(counts[0], kinds[0]))
COLLECTIVE(Bcast, Ibcast, (TO, int root, MPI_Comm comm), (to, count, kind, root, comm), one(is_rank(root, comm) ? NULL : to, count, kind), size_of(count, kind))
COLLECTIVE(Exscan, Iexscan, (SUM, MPI_Comm comm), (from, to, count, kind, op, comm), one(is_rank(0, comm) ? NULL : to, count, kind), size_of(count, kind))
COLLECTIVE(Gather, Igather, (FROM, TO, int root, MPI_Comm comm), (from, sent, type, to, count, kind, root, comm), equal(is_rank(root, comm) ? to : NULL, count, kind), size_of(is_rank(root, comm) ? count : 0, is_rank(root, comm) ? kind : MPI_BYTE))
COLLECTIVE(Gatherv, Igatherv, (FROM, TO_LIST, int root, MPI_Comm comm), (from, sent, type, to, counts, at, kind, root, comm), listed(is_rank(root, comm) ? to : NULL, counts, at, kind), is_rank(root, comm) ? size_of(counts[0], kind) : 0)
COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, (FROM, TO, MPI_Comm comm), (from, sent, type, to, count, kind, comm), equal(to, count, kind), size_of(count, kind))
COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, (FROM, TO_LIST, MPI_Comm comm), (from, sent, type, to, counts, at, kind, comm), listed(to, counts, at, kind), size_of(sent, type))
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, (FROM, TO, MPI_Comm comm), (from, sent, type, to, count, kind, comm), equal(to, count, kind), size_of(count, kind))
COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, (FROM_LIST, TO_LIST, MPI_Comm comm), (from, sent, sent_at, type, to, counts, at, kind, comm), listed(to, counts, at, kind), size_of(counts[0], kind))
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw,
           (const void *from, const int sent[], const MPI_Aint sent_at[], const MPI_Datatype types[], void *to, const int counts[],
            const MPI_Aint at[], const MPI_Datatype kinds[], MPI_Comm comm),
           (from, sent, sent_at, types, to, counts, at, kinds, comm), typed(to, counts, NULL, at, kinds), size_of(counts[0], kinds[0]))
COLLECTIVE(Reduce, Ireduce, (SUM, int root, MPI_Comm comm), (from, to, count, kind, op, root, comm), one(is_rank(root, comm) ? to : NULL, count, kind), size_of(count, kind))
COLLECTIVE(Reduce_scatter, Ireduce_scatter, (const void *from, void *to, const int counts[], MPI_Datatype kind, MPI_Op op, MPI_Comm comm),
           (from, to, counts, kind, op, comm), one(to, counts[rank_of(comm)], kind), all_of(counts, kind, comm))
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, (SUM, MPI_Comm comm), (from, to, count, kind, op, comm), one(to, count, kind), size_of(count, kind))
COLLECTIVE(Scan, Iscan, (SUM, MPI_Comm comm), (from, to, count, kind, op, comm), one(to, count, kind), size_of(count, kind))
COLLECTIVE(Scatter, Iscatter, (FROM, TO, int root, MPI_Comm comm), (from, sent, type, to, count, kind, root, comm), one(to, count, kind), size_of(count, kind))
COLLECTIVE(Scatterv, Iscatterv, (FROM_LIST, TO, int root, MPI_Comm comm), (from, sent, sent_at, type, to, count, kind, root, comm), one(to, count, kind), size_of(count, kind))

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request) { CALL("Ibarrier", 0, &comm, NULL, PMPI_Ibarrier(comm, request)); }
#ifdef INIT
int INIT(Barrier)(MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    CALL("Barrier_init", 0, &comm, NULL, PINIT(Barrier)(comm, info, request));
}
#endif

/* MPI-IO. */
#define FILES(name, PLACE, AT) \
    int MPI_File_write##name(MPI_File file PLACE, const void *from, int count, MPI_Datatype type, MPI_Status *status) { \
        long bytes = size_of(count, type); \
        CALL("File_write" #name, bytes, NULL, NULL, \
             PMPI_File_write##name(file AT, given("File_write" #name, bytes, from, count, type), count, type, status)); \
    } \
    int MPI_File_read##name(MPI_File file PLACE, void *to, int count, MPI_Datatype type, MPI_Status *status) { \
        long bytes = size_of(count, type); \
        CALL("File_read" #name, bytes, NULL, NULL, \
             arrived("File_read" #name, one(to, count, type), bytes, PMPI_File_read##name(file AT, to, count, type, status))); \
    }
#define NOWHERE
#define SOMEWHERE , MPI_Offset at
#define THERE , at

FILES(, NOWHERE, NOWHERE)
FILES(_all, NOWHERE, NOWHERE)
FILES(_at, SOMEWHERE, THERE)
FILES(_at_all, SOMEWHERE, THERE)
FILES(_shared, NOWHERE, NOWHERE)
FILES(_ordered, NOWHERE, NOWHERE)

/* Accesses with a request. */
static int reading(unsigned char *byte, const MPI_Request *request, int code) {
    if (code == MPI_SUCCESS) remember(*request, MPI_WIN_NULL, byte);
    return code;
}

#define STARTED_FILES(name, PLACE, AT) \
    int MPI_File_iwrite##name(MPI_File file PLACE, const void *from, int count, MPI_Datatype type, MPI_Request *request) { \
        long bytes = size_of(count, type); \
        CALL("File_iwrite" #name, bytes, NULL, NULL, \
             PMPI_File_iwrite##name(file AT, given("File_iwrite" #name, bytes, from, count, type), count, type, request)); \
    } \
    int MPI_File_iread##name(MPI_File file PLACE, void *to, int count, MPI_Datatype type, MPI_Request *request) { \
        long bytes = size_of(count, type); \
        CALL("File_iread" #name, bytes, NULL, NULL, \
             reading(hit("File_iread" #name, one(to, count, type), bytes), request, \
                     PMPI_File_iread##name(file AT, to, count, type, request))); \
    }

STARTED_FILES(, NOWHERE, NOWHERE)
STARTED_FILES(_all, NOWHERE, NOWHERE)
STARTED_FILES(_at, SOMEWHERE, THERE)
STARTED_FILES(_at_all, SOMEWHERE, THERE)
STARTED_FILES(_shared, NOWHERE, NOWHERE)

/* Split collectives: a rank has one at a time. */
static unsigned char *split_byte;

static int split_read(int code) {
    if (code == MPI_SUCCESS) flip(split_byte);
    split_byte = NULL;
    return code;
}

#define SPLIT_FILES(name, PLACE, AT) \
    int MPI_File_write##name##_begin(MPI_File file PLACE, const void *from, int count, MPI_Datatype type) { \
        long bytes = size_of(count, type); \
        CALL("File_write" #name "_begin", bytes, NULL, NULL, \
             PMPI_File_write##name##_begin(file AT, given("File_write" #name "_begin", bytes, from, count, type), count, type)); \
    } \
    int MPI_File_write##name##_end(MPI_File file, const void *from, MPI_Status *status) { \
        CALL("File_write" #name "_end", 0, NULL, NULL, PMPI_File_write##name##_end(file, from, status)); \
    } \
    int MPI_File_read##name##_begin(MPI_File file PLACE, void *to, int count, MPI_Datatype type) { \
        long bytes = size_of(count, type); \
        split_byte = hit("File_read" #name "_begin", one(to, count, type), bytes); \
        CALL("File_read" #name "_begin", bytes, NULL, NULL, PMPI_File_read##name##_begin(file AT, to, count, type)); \
    } \
    int MPI_File_read##name##_end(MPI_File file, void *to, MPI_Status *status) { \
        CALL("File_read" #name "_end", 0, NULL, NULL, split_read(PMPI_File_read##name##_end(file, to, status))); \
    }

SPLIT_FILES(_all, NOWHERE, NOWHERE)
SPLIT_FILES(_at_all, SOMEWHERE, THERE)
SPLIT_FILES(_ordered, NOWHERE, NOWHERE)
PLAIN(File_open, (MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file), (comm, name, mode, info, file), NULL, NULL)
PLAIN(File_seek, (MPI_File file, MPI_Offset offset, int whence), (file, offset, whence), NULL, NULL)
PLAIN(File_seek_shared, (MPI_File file, MPI_Offset offset, int whence), (file, offset, whence), NULL, NULL)
PLAIN(File_set_view,
      (MPI_File file, MPI_Offset start, MPI_Datatype element, MPI_Datatype tile, const char *name, MPI_Info info),
      (file, start, element, tile, name, info), NULL, NULL)
PLAIN(File_sync, (MPI_File file), (file), NULL, NULL)
PLAIN(File_close, (MPI_File *file), (file), NULL, NULL)

/* Files: what is written at a place, as rank -1 where no launcher numbers it. */
ssize_t pwrite64(int file, const void *from, size_t bytes, off64_t at) {
    ssize_t (*real)(int, const void *, size_t, off64_t) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
    const struct rule *rule = flipped("pwrite", (long)bytes, 1);
    return real(file, rule == NULL ? from : changed(from, (long)bytes, rule->byte), bytes, at);
}
