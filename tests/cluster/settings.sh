# Sourced by the scripts beside it: where things lie, and what the parts of a cluster of tests agree upon.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster=$(cd "$here/../.." && pwd)/target/cluster
bin=$cluster/bin         # executables of Kubernetes and what a node needs
images=$cluster/images   # docker archives
run=$cluster/run         # everything of the cluster that is up; gone with it
target=${CARGO_TARGET_DIR:-$(cd "$here/../.." && pwd)/target}   # where cargo builds

# Network namespaces: `ebb` holds the control plane and a bridge, `ebb-n1` and `ebb-n2` are a node each. Addresses mean something in there alone.
network=ebb
control_plane=172.30.0.1
service_range=10.96.0.0/16
pod_range=10.244.0.0/16
node_address() { echo "172.30.0.1$1"; }      # of node number $1
node_pod_range() { echo "10.244.$1.0/24"; }

# need PROGRAM PACKAGE: says how to get what is missing.
need() {
    command -v "$1" >/dev/null && return
    echo "$1 is missing: apt-get install -y $2" >&2
    exit 1
}

# alive NAME: whether the process that was started under this name runs. A dying one still has a number, but no executable any more.
alive() { [ -s "$run/pids/$1" ] && [ -n "$(readlink "/proc/$(cat "$run/pids/$1")/exe")" ]; }

# within SECONDS WHAT COMMAND…: waits until the command succeeds.
within() {
    local seconds=$1 what=$2 tries
    shift 2
    for ((tries = seconds * 20; tries > 0; tries--)); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.05
    done
    # Here too, for whoever sees this may take everything down next.
    tail -n 15 "$run"/n*/log/{cell,containerd}.log >&2 || true
    echo "$what did not happen within $seconds s; the logs are in $run/log and $run/n*/log" >&2
    exit 1
}

kubectl() { nsenter --net="/run/netns/$network" "$bin/kubectl" --kubeconfig "$run/pki/admin.conf" "$@"; }

# Waits until ebb's programs are there, all of the version that was installed last.
await_ebb() {
    local deployment
    for deployment in autoscaler activator injector; do
        kubectl -n ebb-system rollout status "deployment/$deployment" --timeout 120s
    done
}

# owned: from here on the cluster goes with this script, however that ends. One that is killed runs no trap, but the kernel closes its end of the pipe on
# which the owner waits. At an end of its own the script waits for `down`, which would else meet the `up` of whatever comes next.
owned() {
    coproc owner { trap '' HUP INT TERM; cat >/dev/null; exec "$here/down" >&2; }
    owner_process=$owner_PID owner_pipe=${owner[1]}
    trap 'eval "exec $owner_pipe>&-"; wait "$owner_process"' EXIT
}
