"""torch.distributed.checkpoint: saves while training goes on, on a group of its own; then loads."""

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from model import small_model, train
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
saving = dist.new_group()
model = DistributedDataParallel(small_model())
for round_ in range(3):
    train(model)
    saved = {name: value.clone() for name, value in model.module.state_dict().items()}
    future = dcp.async_save(saved, checkpoint_id=f"checkpoint{round_}", process_group=saving)
    train(model)
    future.result()

loaded = {name: torch.zeros_like(value) for name, value in saved.items()}
dcp.load(loaded, checkpoint_id="checkpoint2")
print(dist.get_rank(), "equal", [torch.equal(loaded[name], saved[name]) for name in saved])
dist.barrier()
dist.destroy_process_group()
