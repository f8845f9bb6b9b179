#!/bin/sh
# A sweep on Slurm: each task of an array makes a shard, and another job merges them.
#
#   job=$(sbatch --parsable --array=1-16 slurm.sh faded.toml results --seeds 20)
#   sbatch --dependency=afterok:$job --wrap 'bentpipe merge results/shard-* --out results/all'
#
# The indices of the array begin at 1. All tasks need the same version of bentpipe and see the folder `results`.
# A task that Slurm ends and queues again goes on with the runs that it has finished.
#SBATCH --cpus-per-task=8
#SBATCH --requeue
set -eu
file=$1 out=$2
shift 2
exec bentpipe sweep "$file" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" \
    --threads "${SLURM_CPUS_PER_TASK:-1}" --out "$out/shard-$SLURM_ARRAY_TASK_ID" "$@"
