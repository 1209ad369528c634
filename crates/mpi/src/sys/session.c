/* MPI started as a session (MPI 4.0, 11.3) instead of by MPI_Init_thread. */
#include <mpi.h>
#include <string.h>

/* The communicator by which a rank ends the job. MPI_COMM_WORLD does not exist in a session. */
MPI_Comm ombx_all = MPI_COMM_WORLD;

#ifdef OMBX_HAVE_MPI_Session_init
static MPI_Session ombx_session = MPI_SESSION_NULL;

/* Starts a session and creates a communicator of all its ranks. Returns the error of the first call that fails, and its name. */
int ombx_session_start(int multiple, MPI_Comm *all, const char **call) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    const char *level = multiple ? "MPI_THREAD_MULTIPLE" : "MPI_THREAD_FUNNELED";
    int rc;
    *call = "MPI_Info_create";
    if ((rc = MPI_Info_create(&info)) != MPI_SUCCESS) return rc;
    *call = "MPI_Info_set";
    if ((rc = MPI_Info_set(info, "thread_level", level)) != MPI_SUCCESS) return rc;
    *call = "MPI_Session_init";
    if ((rc = MPI_Session_init(info, MPI_ERRORS_RETURN, &ombx_session)) != MPI_SUCCESS) return rc;
    MPI_Info_free(&info);
    *call = "MPI_Group_from_session_pset";
    if ((rc = MPI_Group_from_session_pset(ombx_session, "mpi://WORLD", &group)) != MPI_SUCCESS) return rc;
    *call = "MPI_Comm_create_from_group";
    rc = MPI_Comm_create_from_group(group, "ombx", MPI_INFO_NULL, MPI_ERRORS_RETURN, all);
    if (rc == MPI_SUCCESS) ombx_all = *all;
    MPI_Group_free(&group);
    return rc;
}

/* Returns whether the session grants MPI_THREAD_MULTIPLE. */
int ombx_session_is_multiple(void) {
    MPI_Info info = MPI_INFO_NULL;
    char level[64] = "";
    int length = sizeof level, found = 0;
    if (MPI_Session_get_info(ombx_session, &info) != MPI_SUCCESS) return 0;
    MPI_Info_get_string(info, "thread_level", &length, level, &found);
    MPI_Info_free(&info);
    return found && strcmp(level, "MPI_THREAD_MULTIPLE") == 0;
}

void ombx_session_end(void) {
    ombx_all = MPI_COMM_NULL;
    MPI_Session_finalize(&ombx_session);
}
#else
int ombx_session_start(int multiple, MPI_Comm *all, const char **call) {
    (void)multiple;
    (void)all;
    *call = "MPI_Session_init";
    return MPI_ERR_OTHER;
}

int ombx_session_is_multiple(void) {
    return 0;
}

void ombx_session_end(void) {}
#endif
