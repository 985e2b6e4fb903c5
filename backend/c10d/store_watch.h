// StoreWatch: says whether a store is gone, without a call on it.
//
// A call on a TCPStore whose connection is closed has torch write a page, with a C++ stack, to standard error; after the
// death of the rank that serves the store every other rank would print one. A call on a FileStore whose file was removed
// waits for a new one for as long as the store's timeout, or makes it. So the exchange looks here first. What goes between
// the look and the call still gets the page, or the wait.
//
// torch does not tell a connection's descriptor. It is found as the one socket to the server's port that is new once the
// connection is made. Where that is not exactly one nothing is watched and gone() stays null; so too for a HashStore, which
// lives as long as its process. A file is known by its inode: another one of the same name is another store.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace straggler {

class StoreWatch {
 public:
  // Makes a connection by `connect` and watches it.
  c10::intrusive_ptr<c10d::Store> watch(const std::function<c10::intrusive_ptr<c10d::Store>()>& connect);

  // Why a call on the store would fail; null if nothing is known against it.
  const char* gone() const;

 private:
  using Socket = std::pair<int, unsigned long>;  // descriptor and inode: a number is used again, an inode is not
  static std::set<Socket> sockets();
  void watchSocket(const std::set<Socket>& before, int port);
  bool closed() const;

  Socket socket_{-1, 0};
  std::string path_;                                // empty: no file
  std::pair<unsigned long, unsigned long> file_{};  // device and inode
};

}  // namespace straggler
