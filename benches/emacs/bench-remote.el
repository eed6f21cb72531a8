;;; bench-remote.el --- How long Emacs is busy with a project behind SSH  -*- lexical-binding: t; no-byte-compile: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A real sshd, which runs for one connection, answers 200 ms late.  Prints for
;; each command the time in all, the number of exchanges, and the longest time
;; for which Emacs computes without waiting for anything, collections of
;; garbage included.  That is time of the processor, so that other work of the
;; machine does not count.
;;
;; Usage: CONTEXTURE_BIN=PROGRAM emacs -Q --batch -L elisp -L tests/elisp \
;;            -l benches/emacs/bench-remote.el

;;; Code:

(require 'ert)
(load "contexture-remote-tests" nil t)

(defconst bench-remote-delay 0.1
  "Seconds by which each byte is late, there and back.")

(defconst bench-remote-late "\
import os, queue, subprocess, sys, threading, time
def carry(source, target, end):
    late = queue.Queue()
    def give():
        while True:
            when, data = late.get()
            time.sleep(max(0, when - time.monotonic()))
            if not data:
                return end()
            while data:
                data = data[os.write(target, data):]
    threading.Thread(target=give, daemon=True).start()
    data = True
    while data:
        data = os.read(source, 65536)
        late.put((time.monotonic() + float(sys.argv[1]), data))
there = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
threading.Thread(target=carry, args=(0, there.stdin.fileno(), there.stdin.close), daemon=True).start()
carry(there.stdout.fileno(), 1, lambda: os._exit(0))
there.wait()
"
  "A program in Python that runs a command, whose input and output are late.")

(defvar bench-remote--longest 0 "Longest time without waiting, in seconds.")
(defvar bench-remote--since 0 "Time of the processor when the last wait ended.")

(defun bench-remote--begin (&rest _)
  "Begin to count."
  (setq bench-remote--since (float-time (get-internal-run-time))))

(defun bench-remote--end (&rest _)
  "Note how long Emacs has not waited, and begin again."
  (setq bench-remote--longest (max bench-remote--longest
                                   (- (float-time (get-internal-run-time)) bench-remote--since)))
  (bench-remote--begin))

(defun bench-remote--settle ()
  "Wait until a directory has been fetched."
  (while contexture-tree--fetching (accept-process-output nil 0.02))
  (contexture-test-settle))

(defun bench-remote--row (name function)
  "Call FUNCTION, and print its row with NAME."
  (garbage-collect)
  (setq bench-remote--longest 0)
  (bench-remote--begin)
  (let* ((start (float-time))
         (exchanges (contexture-remote-tests--exchanges (funcall function))))
    (bench-remote--end)
    (princ (format "%-36s %6.0f ms in all, %2d exchanges, longest block %4.0f ms\n" name
                   (* 1000 (- (float-time) start)) exchanges (* 1000 bench-remote--longest)))))

(defun bench-remote--rows (root)
  "Print the rows of the project ROOT."
  (let ((inhibit-message t)
        (save-silently t))
    (find-file (concat root "src/m.py"))
    (pcase-dolist
        (`(,name . ,function)
         `(("adding a region, the first" . ,(lambda () (contexture-add-region 1 10)))
           ("adding a region" . ,(lambda () (contexture-add-region 10 20)))
           ("adding the open file" . contexture-add-buffer)
           ("list" . ,(lambda () (save-window-excursion
                                   (contexture-list (contexture-current-context))
                                   (contexture-test-settle))))
           ("copy of what a model gets" . ,(lambda () (contexture-copy (contexture-current-context))))
           ("differences of a file" . contexture-add-diff)
           ("names after @" . ,(lambda ()
                                 (contexture-files--told
                                  (contexture-files--of (contexture-mention--root) nil))))
           ("directory of 300 files" . ,(lambda ()
                                          (contexture-add-directory (concat root "many"))
                                          (bench-remote--settle)))))
      (bench-remote--row name function))))

(ert-deftest bench-remote ()
  (contexture-remote-tests--with-project
    (contexture-remote-tests--repository root local)
    (dotimes (n 300)
      (contexture-test-file (format "p/many/%03d.txt" n)
                            (apply #'concat (make-list 100 (format "file %d\n" n)))))
    (contexture-test-file "p/src/m.py" "def m():" "    return 1" "" "def n():" "    return 3")
    (with-temp-file (concat folder "late.py") (insert bench-remote-late))
    (rename-file (concat folder "proxy") (concat folder "direct"))
    (with-temp-file (concat folder "proxy")
      (insert (format "#!/bin/sh\nexec python3 %slate.py %s %sdirect\n" folder bench-remote-delay folder)))
    (set-file-modes (concat folder "proxy") #o700)
    (setq contexture-add-to 'project)
    (unwind-protect
        (progn
          (advice-add 'accept-process-output :before #'bench-remote--end)
          (advice-add 'accept-process-output :after #'bench-remote--begin)
          (dolist (function '(timer-event-handler contexture--filter))
            (advice-add function :before #'bench-remote--begin)
            (advice-add function :after #'bench-remote--end))
          (bench-remote--rows root))
      (dolist (function '(accept-process-output timer-event-handler contexture--filter))
        (advice-remove function #'bench-remote--begin)
        (advice-remove function #'bench-remote--end)))))

(ert-run-tests-batch "\\`bench-remote\\'")

(provide 'bench-remote)
;;; bench-remote.el ends here
