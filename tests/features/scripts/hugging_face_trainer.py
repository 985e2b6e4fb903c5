"""A Hugging Face Trainer, on CPU, of a language model of two small layers that is made on the spot."""

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback


class Sentences(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, number):
        tokens = (torch.arange(16) * (number + 1)) % 50
        return {"input_ids": tokens, "labels": tokens}


if __name__ == "__main__":
    torch.manual_seed(3)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2))
    arguments = TrainingArguments(
        output_dir="trained",
        use_cpu=True,
        per_device_train_batch_size=4,
        num_train_epochs=2,
        logging_steps=1,
        save_strategy="epoch",
        eval_strategy="epoch",
        report_to="none",
        disable_tqdm=True,
        ddp_backend="gloo",
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Sentences(), eval_dataset=Sentences())
    trainer.remove_callback(PrinterCallback)  # it prints how long all took
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    print(arguments.process_index, losses)
