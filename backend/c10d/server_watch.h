// ServerWatch: says whether the server of a TCPStore has closed a connection, without a call on the store.
//
// A store call that meets a closed connection has torch write a page, with a C++ stack, to standard error; after the death
// of the rank that serves the store every other rank would print one. So the exchange looks here first. What dies between
// the look and the call still gets the page.
//
// torch does not tell a connection's descriptor. It is found as the one socket to the server's port that is new once the
// connection is made. Where that is not exactly one, or no TCPStore, nothing is watched and closed() stays false.
#pragma once

#include <functional>
#include <set>
#include <utility>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace straggler {

class ServerWatch {
 public:
  // Makes a connection by `connect` and watches it.
  c10::intrusive_ptr<c10d::Store> watch(const std::function<c10::intrusive_ptr<c10d::Store>()>& connect);

  bool closed() const;

 private:
  using Socket = std::pair<int, unsigned long>;  // descriptor and inode: a number is used again, an inode is not
  static std::set<Socket> sockets();

  Socket socket_{-1, 0};
};

}  // namespace straggler
