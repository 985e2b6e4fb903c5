// StoreServer: a TCPStore's server in a process of its own, which a test can stop or end. It goes with the test.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace straggler {

class StoreServer {
 public:
  StoreServer() {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0 || (process_ = fork()) < 0) {
      throw std::runtime_error("no process for the store's server");
    }
    if (process_ == 0) {
      serve(ends[1]);
    }
    const bool told = read(ends[0], &port_, sizeof(port_)) == sizeof(port_);
    close(ends[0]);
    close(ends[1]);
    if (!told) {
      throw std::runtime_error("the store's server did not start");
    }
  }
  ~StoreServer() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // From now on nothing is answered, and no connection is closed.
  void standStill() const { kill(process_, SIGSTOP); }

  c10::intrusive_ptr<c10d::Store> client() const {
    c10d::TCPStoreOptions options;
    options.port = port_;
    options.waitWorkers = false;
    return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }

 private:
  [[noreturn]] static void serve(int told) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    c10d::TCPStoreOptions options;
    options.port = 0;
    options.isServer = true;
    options.waitWorkers = false;
    const c10d::TCPStore server("127.0.0.1", options);
    const std::uint16_t port = server.getPort();
    if (write(told, &port, sizeof(port)) == sizeof(port)) {
      while (true) {
        pause();
      }
    }
    _exit(1);
  }

  pid_t process_ = 0;
  std::uint16_t port_ = 0;
};

}  // namespace straggler
