"""Which cluster started this process, if any.

Its environment says so. Only a TPU VM's own metadata server is asked over the network.
"""

import contextlib
import importlib.util
import os
import urllib.request

METADATA = "computeMetadata/v1/instance/attributes/worker-network-endpoints"


def detect() -> str | None:
    """The kind of cluster that started this process and others; None for a single process.

    A cluster can start a single one, too: `salloc` without `srun`, one task, no indexed job, a TPU
    VM outside a pod.
    """
    get = os.environ.get
    if int(get("OMPI_COMM_WORLD_SIZE", 1)) > 1:
        return "ompi"
    # srun alone sets the step's variables; its count holds in an interactive step too
    tasks = get("SLURM_STEP_NUM_TASKS", get("SLURM_NTASKS", 1))
    if "SLURM_STEP_NODELIST" in os.environ and int(tasks) > 1:
        return "slurm"
    if workers := get("TPU_PROCESS_ADDRESSES") or get("TPU_WORKER_HOSTNAMES") or _tpu_workers():
        return "tpu" if "," in workers or int(get("MEGASCALE_NUM_SLICES", 1)) > 1 else None
    indexed = {"KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"} <= set(os.environ)
    return "kubernetes" if indexed else None


def _tpu_workers() -> str | None:
    """The pod's workers by a TPU VM's own metadata server: no variable has them."""
    # jax, when imported, sets the variable where there is no TPU
    if "TPU_SKIP_MDS_QUERY" not in os.environ and importlib.util.find_spec("libtpu"):
        host = os.environ.get("GCE_METADATA_IP", "metadata.google.internal")
        request = urllib.request.Request(f"http://{host}/{METADATA}")
        request.add_header("Metadata-Flavor", "Google")
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with contextlib.suppress(OSError), direct.open(request, timeout=10) as answer:
            return answer.read().decode()
    return None


def arguments(cluster: str | None) -> dict:
    """Arguments of `jax.distributed.initialize` in a cluster.

    By default it gives the i-th process of a host the i-th GPU, also where that process is alone on
    its host or sees its own GPU only.
    """
    get = os.environ.get
    if cluster not in ("slurm", "ompi"):
        return {}
    if cluster == "slurm":
        alone = get("SLURM_STEP_NUM_NODES") == get("SLURM_NTASKS")
    else:
        alone = get("OMPI_COMM_WORLD_LOCAL_SIZE") == "1"
    every = alone or "," not in get("CUDA_VISIBLE_DEVICES", ",")
    restricted = not every or "JAX_LOCAL_DEVICE_IDS" in os.environ
    return {"cluster_detection_method": cluster, "local_device_ids": None if restricted else []}
