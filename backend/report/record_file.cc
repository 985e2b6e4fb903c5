#include "backend/report/record_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "backend/base/settings.h"

namespace straggler {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;

std::string reasonOf(int error) { return std::generic_category().message(error); }

}  // namespace

RecordFile::RecordFile(const std::string& directory, const std::string& name, Complain complain)
    : complain_(std::move(complain)) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  path_ = (std::filesystem::path(directory) / name).string();
  if (!error) {
    // Without O_NONBLOCK, opening a pipe that somebody put there would wait until somebody reads it.
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  }
  if (descriptor_ < 0) {
    throw SettingsError("STRAGGLER_DIR='" + directory + "': cannot write " + path_ + ": " +
                        (error ? error.message() : reasonOf(errno)) + "; name a folder that can be written");
  }
  (void)fcntl(descriptor_, F_SETFL, O_APPEND);  // what is written is waited for, as of any file
}

RecordFile::~RecordFile() {
  flush();
  close(descriptor_);
}

void RecordFile::line(const std::string& json) {
  pending_.append(json).push_back('\n');
  ++pendingLines_;
  if (pending_.size() >= kPiece) {
    flush();
  }
}

void RecordFile::flush() {
  if (pending_.empty()) {
    return;
  }
  struct stat status {};
  if (fstat(descriptor_, &status) == 0 && status.st_nlink == 0) {
    return lose("the file was removed");
  }
  if (torn_) {
    pending_.insert(pending_.begin(), '\n');
  }
  std::size_t written = 0;
  while (written < pending_.size()) {
    const ssize_t now = write(descriptor_, pending_.data() + written, pending_.size() - written);
    if (now < 0 && errno == EINTR) {
      continue;
    }
    if (now <= 0) {
      const std::string reason = reasonOf(errno);
      torn_ = written > 0 ? pending_[written - 1] != '\n' : torn_;
      pending_.erase(0, written);
      return lose(reason);
    }
    written += static_cast<std::size_t>(now);
  }
  pending_.clear();
  pendingLines_ = 0;
  torn_ = false;
}

void RecordFile::lose(const std::string& reason) {
  if (linesLost_ == 0) {
    complain_(path_ + ": " + reason);
  }
  // At most: a newline that was to end a torn line ends none of these.
  const auto unwritten = static_cast<std::uint64_t>(std::count(pending_.begin(), pending_.end(), '\n'));
  linesLost_ += std::min(pendingLines_, unwritten);
  pending_.clear();
  pendingLines_ = 0;
}

}  // namespace straggler
