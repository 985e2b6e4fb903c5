"""FullyShardedDataParallel (FSDP1)."""

import torch
import torch.distributed as dist
from model import small_model, train
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

dist.init_process_group("gloo")
for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD):
    print(strategy.name)
    train(FullyShardedDataParallel(small_model(), sharding_strategy=strategy, device_id=torch.device("cpu")))
dist.destroy_process_group()
