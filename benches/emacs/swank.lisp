;;; The peer of `make bench': a stock Swank server with one function that keeps what it is given.
;;; Usage: SWANK_LOADER=… PORT_FILE=… sbcl --script swank.lisp

(load (sb-ext:posix-getenv "SWANK_LOADER"))
(funcall (read-from-string "swank-loader:init"))

(defvar *items* '() "At most 50 items, the newest first; in memory only, unlike ours.")
(defvar *count* 0)

(defun bench-add (content brief)
  "Keep CONTENT and return an item of the shape that contexture returns, BRIEF without CONTENT."
  (push content *items*)
  (when (> (length *items*) 50)
    (setf *items* (butlast *items*)))
  (append (list :id (format nil "ctx-~d" (incf *count*)) :type :code)
          (unless brief (list :content content))
          (list :metadata '(:filename "bench.lisp") :timestamp 1790000000
                :tokens (ceiling (length content) 4) :bytes (length content)
                :pinned nil :state :fresh)))

(let ((port (swank:create-server :port 0 :dont-close t)))
  (with-open-file (out (sb-ext:posix-getenv "PORT_FILE") :direction :output :if-exists :supersede)
    (format out "~d~%" port)))

;; Ends with the script that started it: its standard input is closed then.
(loop while (read-char *standard-input* nil))
