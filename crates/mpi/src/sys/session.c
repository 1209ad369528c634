/* MPI started as a session (MPI 4.0, 11.3) instead of by MPI_Init_thread. */
#include <mpi.h>

/* The communicator by which a rank ends the job. MPI_COMM_WORLD does not exist in a session. */
MPI_Comm ombx_all = MPI_COMM_WORLD;

#ifdef OMBX_HAVE_MPI_Session_init
static MPI_Session ombx_session = MPI_SESSION_NULL;

/* Starts a session and creates a communicator of all its ranks. Returns the error of the first call that fails, and its name. */
int ombx_session_start(const char *level, MPI_Comm *all, const char **call) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Group group = MPI_GROUP_NULL;
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

/* Writes the level of thread support that the session grants, such as MPI_THREAD_MULTIPLE, or an empty text. */
void ombx_session_level(char *level, int length) {
    MPI_Info info = MPI_INFO_NULL;
    int found = 0;
    level[0] = 0;
    if (MPI_Session_get_info(ombx_session, &info) != MPI_SUCCESS) return;
    MPI_Info_get_string(info, "thread_level", &length, level, &found);
    MPI_Info_free(&info);
    if (!found) level[0] = 0;
}

void ombx_session_end(void) {
    ombx_all = MPI_COMM_NULL;
    MPI_Session_finalize(&ombx_session);
}
#else
int ombx_session_start(const char *level, MPI_Comm *all, const char **call) {
    (void)level;
    (void)all;
    *call = "MPI_Session_init";
    return MPI_ERR_OTHER;
}

void ombx_session_level(char *level, int length) {
    (void)length;
    level[0] = 0;
}

void ombx_session_end(void) {}
#endif
