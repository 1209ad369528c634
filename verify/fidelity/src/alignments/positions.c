/* Time of a window of 64 messages of 8 bytes after 1 to 256 further empty messages: the mean over these positions, in nanoseconds, then
   the least and the largest. Each is the median of passes, and each pass the median of samples. With an argument there is one position,
   that at which the program starts. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MESSAGES 64
#define BYTES 8
#define POSITIONS 256
#define PASSES 7
/* Samples of four windows, beside which a reading of the clock is short. */
#define SAMPLES 10
#define MOST_SAMPLES 250
#define WINDOWS 4

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, count, sizeof *values, by_size);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

int main(int argc, char **argv) {
    static char data[MESSAGES][BYTES], answer[4];
    static double times[POSITIONS][PASSES];
    static MPI_Status statuses[MESSAGES];
    MPI_Request requests[MESSAGES];
    int rank, positions = argc > 1 ? 1 : POSITIONS, passes = argc > 1 ? 1 : PASSES, samples = argc > 1 ? MOST_SAMPLES : SAMPLES;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int pass = 0; pass < passes; pass++)
        for (int position = 0; position < positions; position++) {
            double of_pass[MOST_SAMPLES];
            if (rank == 0) MPI_Send(NULL, 0, MPI_BYTE, 1, 9, MPI_COMM_WORLD);
            else MPI_Recv(NULL, 0, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < samples; i++) {
                double start = MPI_Wtime();
                for (int window = 0; window < WINDOWS; window++) {
                    for (int m = 0; m < MESSAGES; m++)
                        if (rank == 0) MPI_Isend(data[m], BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, requests + m);
                        else MPI_Irecv(data[m], BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, requests + m);
                    MPI_Waitall(MESSAGES, requests, statuses);
                    if (rank == 0) MPI_Recv(answer, 4, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    else MPI_Send(answer, 4, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
                }
                of_pass[i] = (MPI_Wtime() - start) * 1e9 / WINDOWS;
            }
            times[position][pass] = median(of_pass, samples);
        }
    if (rank == 0) {
        double sum = 0, least = 1e18, largest = 0;
        for (int position = 0; position < positions; position++) {
            double time = median(times[position], passes);
            sum += time;
            if (time < least) least = time;
            if (time > largest) largest = time;
        }
        printf("%.1f %.1f %.1f\n", sum / positions, least, largest);
    }
    MPI_Finalize();
    return 0;
}
