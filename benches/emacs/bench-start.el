;;; bench-start.el --- Time the first moments  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The part of `make bench' for what a user meets first: how long the
;; first command takes, which also starts the server, and how long the
;; menu takes to come up for the first time.  Each time is that of a new
;; Emacs.  The rows are those of from-emacs.el.  The environment has
;; CONTEXTURE_BIN.

;;; Code:

(require 'cl-lib)
(require 'from-emacs)

(defun bench-start-times (count form)
  "The milliseconds that FORM takes in COUNT new Emacs with a file, sorted."
  (let* ((folder (make-temp-file "bench-start" t))
         (process-environment (append (list (concat "XDG_STATE_HOME=" folder)
                                            (concat "XDG_RUNTIME_DIR=" folder))
                                      process-environment))
         (file (expand-file-name "a.el" folder))
         (form `(let ((inhibit-message t))
                  (require 'contexture)
                  (setq contexture-server-command (list (getenv "CONTEXTURE_BIN"))
                        contexture-server-args '("--ephemeral"))
                  (find-file ,file)
                  (garbage-collect)
                  (let ((start (float-time)))
                    ,form
                    (princ (* 1e3 (- (float-time) start)))))))
    (write-region "(defun a ()\n  \"Return one.\"\n  1)\n" nil file nil 'silent)
    (unwind-protect
        (sort (cl-loop repeat count collect
                       (with-temp-buffer
                         (call-process (expand-file-name invocation-name invocation-directory)
                                       nil t nil "-Q" "--batch" "-L"
                                       (file-name-directory (locate-library "contexture"))
                                       "--eval" (prin1-to-string form))
                         (goto-char (point-max))
                         (re-search-backward "^\\(?:.*[^0-9.]\\)?\\([0-9.]+\\)\\'")
                         (string-to-number (match-string 1))))
              #'<)
      (delete-directory folder t))))

(defun bench-start-run ()
  "Print the rows."
  (bench-row-limit "first command, which starts the server, median of 11"
                   (bench-quantile (bench-start-times
                                    11 '(progn (contexture-add-region (point-min) (point-max))
                                               (contexture-request 'ping)))
                                   0.5)
                   400)
  (bench-row-limit "menu, the first time, without a server, median of 11"
                   (bench-quantile (bench-start-times
                                    11 '(progn (contexture-menu) (redisplay t)))
                                   0.5)
                   150))

(provide 'bench-start)
;;; bench-start.el ends here
