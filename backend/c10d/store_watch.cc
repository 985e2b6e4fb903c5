#include "backend/c10d/store_watch.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
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

// Device and inode of a file; zeroes where there is none.
std::pair<unsigned long, unsigned long> fileAt(const char* path) {
  struct stat status {};
  return stat(path, &status) == 0 ? std::pair<unsigned long, unsigned long>(status.st_dev, status.st_ino)
                                  : std::pair<unsigned long, unsigned long>();
}

}  // namespace

std::set<StoreWatch::Socket> StoreWatch::sockets() {
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

c10::intrusive_ptr<c10d::Store> StoreWatch::watch(const std::function<c10::intrusive_ptr<c10d::Store>()>& connect) {
  const auto before = sockets();
  auto store = connect();
  auto* prefix = dynamic_cast<c10d::PrefixStore*>(store.get());
  const auto below = prefix != nullptr ? prefix->getUnderlyingNonPrefixStore() : store;
  if (const auto* tcp = dynamic_cast<c10d::TCPStore*>(below.get())) {
    watchSocket(before, tcp->getPort());
  } else if (const auto* file = dynamic_cast<c10d::FileStore*>(below.get())) {
    path_ = file->getPath();
    file_ = fileAt(path_.c_str());
  }
  return store;
}

void StoreWatch::watchSocket(const std::set<Socket>& before, int port) {
  int matching = 0;
  for (const auto& socket : sockets()) {
    if (before.count(socket) == 0 && portOfPeer(socket.first) == port) {
      socket_ = socket;
      ++matching;
    }
  }
  if (matching != 1) {
    socket_ = {-1, 0};
  }
}

const char* StoreWatch::gone() const {
  if (closed()) {
    return "its server closed the connection";
  }
  return !path_.empty() && fileAt(path_.c_str()) != file_ ? "its file was removed" : nullptr;
}

bool StoreWatch::closed() const {
  if (socket_.first < 0 || inodeOf(socket_.first) != socket_.second) {
    return false;
  }
  pollfd look{socket_.first, POLLRDHUP, 0};
  return poll(&look, 1, 0) > 0;
}

}  // namespace straggler
