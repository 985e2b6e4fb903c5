#include "backend/c10d/server_watch.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace straggler {
namespace {

// The inode of a socket; 0 for any other descriptor.
unsigned long inodeOf(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

int portOfPeer(int descriptor) {
  sockaddr_in6 address{};
  socklen_t size = sizeof(address);
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  const bool known = getpeername(descriptor, plain, &size) == 0;
  if (!known || (plain->sa_family != AF_INET && plain->sa_family != AF_INET6)) {
    return -1;
  }
  return ntohs(address.sin6_port);  // at the same place in both families
}

}  // namespace

std::set<ServerWatch::Socket> ServerWatch::sockets() {
  std::set<Socket> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const int descriptor = std::stoi(entry.path().filename().string());
    if (const auto inode = inodeOf(descriptor)) {
      found.emplace(descriptor, inode);
    }
  }
  return found;
}

c10::intrusive_ptr<c10d::Store> ServerWatch::watch(const std::function<c10::intrusive_ptr<c10d::Store>()>& connect) {
  const auto before = sockets();
  auto store = connect();
  auto* prefix = dynamic_cast<c10d::PrefixStore*>(store.get());
  const auto below = prefix != nullptr ? prefix->getUnderlyingNonPrefixStore() : store;
  if (const auto* tcp = dynamic_cast<c10d::TCPStore*>(below.get())) {
    int matching = 0;
    for (const auto& socket : sockets()) {
      if (before.count(socket) == 0 && portOfPeer(socket.first) == tcp->getPort()) {
        socket_ = socket;
        ++matching;
      }
    }
    if (matching != 1) {
      socket_ = {-1, 0};
    }
  }
  return store;
}

bool ServerWatch::closed() const {
  if (socket_.first < 0 || inodeOf(socket_.first) != socket_.second) {
    return false;
  }
  pollfd look{socket_.first, POLLRDHUP, 0};
  return poll(&look, 1, 0) > 0;
}

}  // namespace straggler
