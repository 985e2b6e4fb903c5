// RecordFile: a file of JSON lines in the folder of STRAGGLER_DIR. Lines are gathered and written in large pieces.
//
// Opening fails loudly: a folder that cannot be written is an error at start. Later nothing throws: a full disk, or a
// folder that was removed, costs the lines, which are counted; the first loss is told, once, and writing is tried again,
// so records go on when there is space again.
//
// Security: the file is created with the user's umask; a symbolic link in its place is not followed, and a pipe not waited
// for. Lines are appended, so an earlier run's records stay.
//
// Not thread-safe: it belongs to the thread that writes it. A blocked disk blocks that thread, never training.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace straggler {

class RecordFile {
 public:
  // `complain` is called once, at the first loss, with path and reason.
  using Complain = std::function<void(const std::string& reason)>;

  // Creates the folder if it is missing. Throws SettingsError with path and reason.
  RecordFile(const std::string& directory, const std::string& name, Complain complain);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  void line(const std::string& json);
  void flush();

  std::uint64_t linesLost() const { return linesLost_; }

 private:
  // Counts what is left in pending_ as lost.
  void lose(const std::string& reason);

  std::string path_;
  int descriptor_ = -1;
  std::string pending_;
  std::uint64_t pendingLines_ = 0;
  bool torn_ = false;  // the file ends within a line: the next piece begins with a newline, so that it alone is spoilt
  std::uint64_t linesLost_ = 0;
  Complain complain_;
};

}  // namespace straggler
