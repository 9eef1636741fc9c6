/* One-sided operations of MPI between all ranks, each with a result that is known: put, get, accumulate, fetch-and-op,
 * compare-and-swap, in the three kinds of epochs. Rank 0 prints how many numbers are wrong.
 *
 * usage: one-sided COUNT [lock]
 *   COUNT  how many numbers each put, get and accumulate moves
 *   lock   also a lock that is taken by compare-and-swap */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 50 };

int main(int argc, char **argv) {
	int rank, size;
	int64_t wrong = 0, all_wrong = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	const int count = argc > 1 ? atoi(argv[1]) : 1;
	const int with_lock = argc > 2 && strcmp(argv[2], "lock") == 0;
	const int left = (rank + size - 1) % size, right = (rank + 1) % size;

	/* Of each rank: what its left one puts, a sum of all, a counter, a lock. */
	int64_t *own, *out = malloc(sizeof *out * count), *in = malloc(sizeof *in * count);
	MPI_Win window;
	MPI_Win_allocate(sizeof *own * (2 * count + 2), sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
	int64_t *sums = own + count, *counter = own + 2 * count, *lock = counter + 1;
	for (int place = 0; place < 2 * count + 2; place++) own[place] = 0;
	MPI_Barrier(MPI_COMM_WORLD);

	MPI_Group everyone, to, from;
	MPI_Comm_group(MPI_COMM_WORLD, &everyone);
	MPI_Group_incl(everyone, 1, &right, &to);
	MPI_Group_incl(everyone, 1, &left, &from);
	for (int time = 0; time < TIMES; time++) {
		/* A ring of puts: between fences, and between the two neighbours alone. */
		for (int place = 0; place < count; place++) out[place] = rank + (int64_t)size * time + place;
		if (time % 2) {
			MPI_Win_post(from, 0, window);
			MPI_Win_start(to, 0, window);
		} else
			MPI_Win_fence(0, window);
		MPI_Put(out, count, MPI_INT64_T, right, 0, count, MPI_INT64_T, window);
		if (time % 2) {
			MPI_Win_complete(window);
			MPI_Win_wait(window);
		} else
			MPI_Win_fence(0, window);
		for (int place = 0; place < count; place++) wrong += own[place] != left + (int64_t)size * time + place;
		/* What is at the right is what this rank put there. */
		MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
		MPI_Get(in, count, MPI_INT64_T, right, 0, count, MPI_INT64_T, window);
		MPI_Win_unlock(right, window);
		for (int place = 0; place < count; place++) wrong += in[place] != out[place];
		MPI_Barrier(MPI_COMM_WORLD);
	}

	const int64_t one = 1;
	int64_t before = -1;
	for (int place = 0; place < count; place++) out[place] = 1 + place;
	MPI_Win_lock_all(0, window);
	for (int time = 0; time < TIMES; time++) {
		for (int target = 0; target < size; target++)
			MPI_Accumulate(out, count, MPI_INT64_T, target, count, count, MPI_INT64_T, MPI_SUM, window);
		/* A counter only grows. */
		int64_t last = before;
		MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 2 * count, MPI_SUM, window);
		MPI_Win_flush_all(window);
		wrong += before <= last;
		if (!with_lock) continue;
		/* A lock at rank 0, and what it guards: a counter that is read and written apart, at rank 1. */
		int64_t free = 0, mine = rank + 1, held;
		do {
			MPI_Compare_and_swap(&mine, &free, &held, MPI_INT64_T, 0, 2 * count + 1, window);
			MPI_Win_flush(0, window);
		} while (held != free);
		int64_t guarded;
		MPI_Get(&guarded, 1, MPI_INT64_T, 1, 2 * count, 1, MPI_INT64_T, window);
		MPI_Win_flush(1, window);
		guarded++;
		MPI_Put(&guarded, 1, MPI_INT64_T, 1, 2 * count, 1, MPI_INT64_T, window);
		MPI_Win_flush(1, window);
		MPI_Compare_and_swap(&free, &mine, &held, MPI_INT64_T, 0, 2 * count + 1, window);
		MPI_Win_flush(0, window);
		wrong += held != mine;
	}
	MPI_Win_unlock_all(window);
	MPI_Barrier(MPI_COMM_WORLD);

	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
	for (int place = 0; place < count; place++) wrong += sums[place] != (int64_t)size * TIMES * (1 + place);
	if (rank == 0 || (rank == 1 && with_lock)) wrong += *counter != (int64_t)size * TIMES;
	wrong += *lock != 0;
	MPI_Win_unlock(rank, window);

	MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0) printf("%lld numbers are wrong, of %d ranks\n", (long long)all_wrong, size);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Group_free(&everyone);
	MPI_Win_free(&window);
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}
