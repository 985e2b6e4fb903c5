"""Lightning's Trainer with its DDP strategy, on CPU."""

from lightning.pytorch import Trainer, seed_everything
from lightning_model import Regression, data

if __name__ == "__main__":
    seed_everything(3)
    trainer = Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=2,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
    )
    trainer.fit(Regression(), data(), data())
    print(trainer.global_rank, {name: value.item().hex() for name, value in sorted(trainer.callback_metrics.items())})
