#!/bin/bash
#SBATCH --job-name=algocapture
#SBATCH --time=04:00:00
#SBATCH --cpus-per-task=4
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append

# sbatch docs/slurm/requeue.sh RECIPE FOLDER [more options of `algocapture run`]
set -u
recipe=$1
folder=$2
shift 2

# SLURM sends SIGUSR1 to this step two minutes before the time limit: the run then writes its
# checkpoint and ends with exit code 3. The same command continues it.
# srun takes no --cpus-per-task from the job by itself (since SLURM 22.05).
srun --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" algocapture run "$recipe" --out "$folder" "$@"
code=$?
if [ "$code" -eq 3 ]; then
  echo "interrupted: job $SLURM_JOB_ID goes back into the queue"
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
