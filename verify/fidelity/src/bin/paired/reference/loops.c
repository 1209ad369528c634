/* Finds and runs loops by name. */
#include "loops.h"
#include <stdio.h>
#include <string.h>

extern const struct row fidelity_two_sided[], fidelity_one_sided[], fidelity_collective[], fidelity_files[];

static const struct row *const TABLES[] = { fidelity_two_sided, fidelity_one_sided, fidelity_collective,
                                           fidelity_files };
enum { COUNT = sizeof TABLES / sizeof *TABLES };

/* Ends the job, if a library returns an error instead of doing so itself. */
void fidelity_failed(void)
{
    fputs("a C loop got an error from MPI\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    __builtin_unreachable();
}

/* Size of the structure that both languages declare. */
const size_t fidelity_setup_size = sizeof(struct setup);

const struct row *fidelity_find(const char *name)
{
    for (size_t table = 0; table < COUNT; table++)
        for (const struct row *row = TABLES[table]; row->name; row++)
            if (strcmp(row->name, name) == 0)
                return row;
    return NULL;
}

/* Sets the messages of an iteration. Some have one buffer, so that the kernel has opened one message. */
void fidelity_set_depth(struct setup *setup, int depth)
{
    setup->depth = depth;
}

/* Returns a name by its number, or NULL beyond the last. */
const char *fidelity_name(size_t at)
{
    for (size_t table = 0; table < COUNT; table++)
        for (const struct row *row = TABLES[table]; row->name; row++)
            if (at-- == 0)
                return row->name;
    return NULL;
}

/* Runs the loop of a timed rank. callgrind profiles this function. */
__attribute__((noinline)) void fidelity_timed(const struct row *row, const struct setup *setup, long batch, long samples,
                                              unsigned long long *stamps)
{
    row->active(setup, batch, samples, stamps);
    /* Prevents a tail call, which would be a jump. */
    __asm__ volatile("" ::: "memory");
}

/* Runs the loop of a rank that answers. */
void fidelity_answered(const struct row *row, const struct setup *setup, long batch, long samples)
{
    row->passive(setup, batch, samples, NULL);
}

unsigned long long fidelity_tick(void)
{
    return tick();
}
