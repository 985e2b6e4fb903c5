"""Lightning's Trainer with its FSDP strategy, on CPU.

Lightning asks for a GPU where the strategy is exactly `FSDPStrategy`, and does not tell FSDP of a CPU: a class derived
from it may have one, and a module that is wrapped by itself is left as it is.
"""

import torch
from lightning.pytorch import Trainer, seed_everything
from lightning.pytorch.strategies import FSDPStrategy
from lightning_model import Regression, data
from torch.distributed.fsdp import FullyShardedDataParallel


class FSDPOnCpu(FSDPStrategy):
    pass


class Sharded(Regression):
    def configure_model(self):
        if not isinstance(self.layers, FullyShardedDataParallel):
            cpu = torch.device("cpu")
            self.layers = FullyShardedDataParallel(self.layers, use_orig_params=True, device_id=cpu)


if __name__ == "__main__":
    seed_everything(3)
    trainer = Trainer(
        accelerator="cpu",
        devices=2,
        strategy=FSDPOnCpu(),
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
    )
    trainer.fit(Sharded(), data(), data())
    print(trainer.global_rank, {name: value.item().hex() for name, value in sorted(trainer.callback_metrics.items())})
