;;; contexture-log.el --- What the server writes to stderr  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Keeps the server's log in a buffer; its last line says why a server did
;; not start.  The log needs its own pipe: by default Emacs would mix it
;; into the pipe of the protocol.

;;; Code:

(require 'contexture-rpc)
(eval-when-compile (require 'subr-x))

(defconst contexture--log-buffer "*contexture: server log*"
  "Name of the buffer that shows what the server writes to stderr.")

(defconst contexture--log-size 65536
  "Maximum size of the server's log, in characters.")

(defun contexture--log-pipe ()
  "Return a pipe that collects what the server writes to stderr."
  (make-pipe-process :name "contexture log" :noquery t
                     :buffer (get-buffer-create contexture--log-buffer)
                     :coding 'utf-8-unix
                     :filter #'contexture--log :sentinel #'ignore))

(defun contexture--log (process text)
  "Append TEXT, written by PROCESS, to the log; cut a log that is too long."
  (when (buffer-live-p (process-buffer process))
    (with-current-buffer (process-buffer process)
      (goto-char (point-max))
      (insert (contexture--redact text))
      (when (> (buffer-size) contexture--log-size)
        (delete-region (point-min) (- (point-max) (/ contexture--log-size 2)))))))

(defun contexture--last-words (process)
  "Return the last line that PROCESS wrote to stderr, or nil."
  (when-let* ((log (process-get process 'contexture-log)))
    ;; The process is dead, but Emacs may not have read all of its output.
    (let ((tries 5))
      (while (and (> tries 0) (accept-process-output log 0.02 nil t))
        (setq tries (1- tries))))
    (with-current-buffer (get-buffer-create contexture--log-buffer)
      (save-excursion
        (goto-char (point-max))
        (skip-chars-backward " \t\n")
        (unless (bobp)
          (buffer-substring-no-properties (line-beginning-position) (point)))))))

(provide 'contexture-log)
;;; contexture-log.el ends here
