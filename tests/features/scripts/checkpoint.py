"""torch.distributed.checkpoint: saves a sharded model with its optimizer, and loads it into another."""

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from model import small_model, train
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))


def sharded():
    model = fully_shard(small_model(), mesh=mesh)
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def state_of(model, optimizer):
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments}


model, optimizer = sharded()
train(model, optimizer)
dcp.save(state_of(model, optimizer), checkpoint_id="checkpoint")

other, its_optimizer = sharded()
state = state_of(other, its_optimizer)
dcp.load(state, checkpoint_id="checkpoint")
set_state_dict(other, its_optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
equal = [torch.equal(a.to_local(), b.to_local()) for a, b in zip(model.parameters(), other.parameters(), strict=True)]
print(dist.get_rank(), "equal", equal)
train(other, its_optimizer)
dist.destroy_process_group()
