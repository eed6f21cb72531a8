;;; beside-gptel.el --- Time contexture beside gptel  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The part of `make bench' that needs gptel: for how long Emacs is
;; blocked while a directory of 4,000 small files, a project of its own,
;; is added.  gptel notes the name of each file and reads them all when
;; a request is made; contexture has the server read and count them and
;; adds one item that lists them.  Both look at every file.
;;
;; Prints a row as from-emacs.el does.  CONTEXTURE_BIN and
;; CONTEXTURE_STATE name the server and its folder, and gptel is on the
;; load path.

;;; Code:

(require 'from-emacs)

(declare-function gptel-context-add-file "ext:gptel-context" (path))
(defvar gptel-context)

(defun bench-gptel-add (directory)
  "Add DIRECTORY to gptel's context, which must then have 4,000 files.
Its message for each file is not shown: a batch Emacs is slow at that."
  (setq gptel-context nil)
  (let ((inhibit-message t)
        (message-log-max nil))
    (gptel-context-add-file directory))
  (unless (= 4000 (length gptel-context))
    (error "The context of gptel has %d files" (length gptel-context))))

(defun bench-gptel-rounds (rounds function)
  "Return the sorted milliseconds that FUNCTION blocks Emacs in ROUNDS."
  (let (samples)
    (dotimes (_ rounds)
      (push (* 1e3 (bench-with-ticks function)) samples))
    (sort samples #'<)))

(defun bench-beside-gptel ()
  "Run both and print the row."
  (require 'gptel)
  (require 'gptel-context)
  (let* ((state (getenv "CONTEXTURE_STATE"))
         (directory (concat state "-gptel-tree"))
         (ours (bench-connection (getenv "CONTEXTURE_BIN") "--state" state)))
    (bench-make-tree directory 4000)
    (call-process "git" nil nil nil "init" "--quiet" directory)
    (bench-list-tree ours directory)    ; starts the server
    (let ((ours (bench-gptel-rounds 5 (lambda () (bench-list-tree ours directory))))
          (theirs (bench-gptel-rounds 3 (lambda () (bench-gptel-add directory)))))
      (bench-row "adding 4,000 files, longest block : gptel"
                 (format "%.1f ms" (bench-quantile ours 0.5))
                 (format "%.0f ms" (bench-quantile theirs 0.5))
                 (format "%.0f x shorter" (/ (bench-quantile theirs 0.5)
                                             (bench-quantile ours 0.5)))
                 "-" "-"))))

(provide 'beside-gptel)
;;; beside-gptel.el ends here
