#include "backend/c10d/chained_work.h"

#include <utility>

namespace straggler {

c10::intrusive_ptr<c10d::Work> ChainedWork::after(const c10::intrusive_ptr<c10d::Work>& before,
                                                  std::vector<at::Tensor> outputs, std::function<void()> finish) {
  auto work = c10::make_intrusive<ChainedWork>(before->retrieveOpType(), std::move(outputs));
  work->follow(before, std::move(finish));
  return work;
}

ChainedWork::ChainedWork(c10d::OpType type, std::vector<at::Tensor> outputs)
    : Work(-1, type),
      outputs_(std::move(outputs)),
      future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors())) {}

void ChainedWork::follow(const c10::intrusive_ptr<c10d::Work>& before, std::function<void()> finish) {
  auto self = c10::intrusive_ptr<ChainedWork>::unsafe_reclaim_from_nonowning(this);
  before->getFuture()->addCallback(
      [self = std::move(self), finish = std::move(finish)](c10::ivalue::Future& done) {
        std::exception_ptr error;
        try {
          if (done.hasError()) {
            std::rethrow_exception(done.exception_ptr());
          }
          finish();
        } catch (const std::exception&) {
          error = std::current_exception();
        }
        self->end(error);
      },
      /*uses_future=*/true);
}

// Whoever waits for the Work finds its Future done.
void ChainedWork::end(const std::exception_ptr& error) {
  if (error) {
    future_->setError(error);
  } else {
    future_->markCompleted(at::IValue(outputs_));
  }
  finish(error);
}

}  // namespace straggler
