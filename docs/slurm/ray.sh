#!/bin/bash
#SBATCH --job-name=algocapture-ray
#SBATCH --time=04:00:00
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --signal=B:USR1@180
#SBATCH --requeue
#SBATCH --open-mode=append

# sbatch docs/slurm/ray.sh RECIPE FOLDER [more options of `algocapture run`]
set -u
recipe=$1
folder=$2
shift 2

# Others have accounts on these nodes too: only who knows this job's token may use its cluster.
export RAY_AUTH_MODE=token
RAY_AUTH_TOKEN=$(od -vAn -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN

# A Ray cluster inside the allocation: the head on the first node, a worker on each of the others.
port=${RAY_PORT:-6379}
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
head=${nodes[0]}
start() { # node, then options of `ray start`
  srun --nodes=1 --ntasks=1 --cpus-per-task="$SLURM_CPUS_PER_TASK" --overlap -w "$1" \
    ray start --block --disable-usage-stats --num-cpus="$SLURM_CPUS_PER_TASK" "${@:2}" &
  cluster+=($!)
}
cluster=()
trap 'kill "${cluster[@]}" 2>/dev/null; wait' EXIT
start "$head" --head --port="$port" --include-dashboard=false
until (echo >"/dev/tcp/$head/$port") 2>/dev/null; do sleep 1; done
for node in "${nodes[@]:1}"; do start "$node" --address="$head:$port"; done

# SLURM sends SIGUSR1 to this script three minutes before the time limit: the driver then asks all
# units for a checkpoint and ends with exit code 3. The same command continues.
srun --nodes=1 --ntasks=1 --overlap -w "$head" \
  algocapture run "$recipe" --out "$folder" --address "$head:$port" "$@" &
driver=$!
trap 'kill -USR1 "$driver"' USR1
wait "$driver"
code=$?
while kill -0 "$driver" 2>/dev/null; do # a signal interrupts wait
  wait "$driver"
  code=$?
done
if [ "$code" -eq 3 ]; then
  echo "interrupted: job $SLURM_JOB_ID goes back into the queue"
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
