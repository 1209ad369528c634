/* MPI started as a session (MPI 4.0, 11.3) instead of by MPI_Init_thread. The calls are those of the loaded library: the header of the build
   may be older. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

/* The communicator by which a rank ends the job. MPI_COMM_WORLD does not exist in a session. */
MPI_Comm ombx_all = MPI_COMM_WORLD;

/* A handle of a session is an int in MPICH and its relatives, as MPI_Comm is, and a pointer in other libraries. */
#if defined(MPICH_VERSION) && !defined(MPI_ABI_VERSION)
typedef int session;
#else
typedef void *session;
#endif

static session ombx_session;

typedef int (*init)(MPI_Info, MPI_Errhandler, session *);
typedef int (*group_of)(session, const char *, MPI_Group *);
typedef int (*comm_of)(MPI_Group, const char *, MPI_Info, MPI_Errhandler, MPI_Comm *);
typedef int (*get_info)(session, MPI_Info *);
typedef int (*finalize)(session *);

/* Finds a function and names it for messages. */
static void *find(const char *name, const char **call) {
    *call = name;
    return dlsym(RTLD_DEFAULT, name);
}

/* Starts a session and creates a communicator of all its ranks. Returns the error of the first call that fails, and its name. */
int ombx_session_start(const char *level, MPI_Comm *all, const char **call) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    int rc;
    init start = (init)find("MPI_Session_init", call);
    if (!start) return MPI_ERR_OTHER;
    *call = "MPI_Info_create";
    if ((rc = MPI_Info_create(&info)) != MPI_SUCCESS) return rc;
    *call = "MPI_Info_set";
    if ((rc = MPI_Info_set(info, "thread_level", level)) != MPI_SUCCESS) return rc;
    *call = "MPI_Session_init";
    if ((rc = start(info, MPI_ERRORS_RETURN, &ombx_session)) != MPI_SUCCESS) return rc;
    MPI_Info_free(&info);
    group_of members = (group_of)find("MPI_Group_from_session_pset", call);
    if (!members) return MPI_ERR_OTHER;
    if ((rc = members(ombx_session, "mpi://WORLD", &group)) != MPI_SUCCESS) return rc;
    comm_of create = (comm_of)find("MPI_Comm_create_from_group", call);
    if (!create) return MPI_ERR_OTHER;
    rc = create(group, "ombx", MPI_INFO_NULL, MPI_ERRORS_RETURN, all);
    if (rc == MPI_SUCCESS) ombx_all = *all;
    MPI_Group_free(&group);
    return rc;
}

/* Writes the level of thread support that the session grants, such as MPI_THREAD_MULTIPLE, or an empty text. */
void ombx_session_level(char *level, int length) {
    MPI_Info info = MPI_INFO_NULL;
    const char *call;
    int found = 0;
    get_info get = (get_info)find("MPI_Session_get_info", &call);
    level[0] = 0;
    if (!get || get(ombx_session, &info) != MPI_SUCCESS) return;
    MPI_Info_get(info, "thread_level", length - 1, level, &found);
    MPI_Info_free(&info);
    if (!found) level[0] = 0;
}

void ombx_session_end(void) {
    const char *call;
    finalize end = (finalize)find("MPI_Session_finalize", &call);
    ombx_all = MPI_COMM_NULL;
    if (end) end(&ombx_session);
}
