#include "backend/c10d/chained_work.h"

#include <exception>
#include <utility>

namespace straggler {

c10::intrusive_ptr<c10d::Work> ChainedWork::after(const c10::intrusive_ptr<c10d::Work>& before,
                                                  std::vector<at::Tensor> outputs, std::function<void()> finish) {
  const auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors());
  auto work = c10::make_intrusive<ChainedWork>(before->retrieveOpType(), outputs, future);
  before->getFuture()->addCallback(
      [work, future, outputs = std::move(outputs), finish = std::move(finish)](c10::ivalue::Future& done) {
        std::exception_ptr error;
        try {
          if (done.hasError()) {
            std::rethrow_exception(done.exception_ptr());
          }
          finish();
        } catch (const std::exception&) {
          error = std::current_exception();
        }
        // Whoever waits for the Work finds its Future done.
        if (error) {
          future->setError(error);
        } else {
          future->markCompleted(at::IValue(outputs));
        }
        work->finish(error);
      },
      /*uses_future=*/true);
  return work;
}

ChainedWork::ChainedWork(c10d::OpType type, std::vector<at::Tensor> outputs,
                         c10::intrusive_ptr<c10::ivalue::Future> future)
    : Work(-1, type), outputs_(std::move(outputs)), future_(std::move(future)) {}

}  // namespace straggler
