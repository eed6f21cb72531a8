;;; contexture-test-helper.el --- What the suites share  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Each test gets a server of its own, a real one, and a folder of its
;; own.  Waiting is always for a condition, never for a time.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'ert-x)
(require 'contexture)
(require 'contexture-list)
(require 'contexture-preview)
(require 'contexture-symbol)

(defconst contexture-test-binary
  (let ((root (expand-file-name "../.." (file-name-directory
                                         (or load-file-name buffer-file-name)))))
    (or (getenv "CONTEXTURE_BIN")
        (cl-find-if #'file-executable-p
                    (list (expand-file-name "target/release/contexture" root)
                          (expand-file-name "target/debug/contexture" root)))))
  "The server under test.")

(defconst contexture-test-timeout 30
  "Seconds after which a condition that does not come true fails the test.")

(defvar contexture-test-directory nil
  "The running test's own directory, ending in a slash.")

(defmacro contexture-test-until (condition)
  "Wait until CONDITION is non-nil and return its value; fail if it stays nil."
  `(contexture-test--until (lambda () ,condition) ',condition))

(defun contexture-test--until (function form)
  "Wait until FUNCTION returns non-nil; FORM is what to show if it does not."
  (let ((end (+ (float-time) contexture-test-timeout)) value)
    (while (not (setq value (funcall function)))
      (when (> (float-time) end)
        (ert-fail (list 'never-true form)))
      (accept-process-output nil 0.01))
    value))

(defmacro contexture-test-with-server (&rest body)
  "Run BODY with a server that keeps nothing, and clean up after it."
  (declare (indent 0) (debug t))
  `(contexture-test-with-args '("--ephemeral") (lambda () ,@body)))

(defmacro contexture-test-with-state (&rest body)
  "Run BODY with a server that keeps its state in the test's directory."
  (declare (indent 0) (debug t))
  `(contexture-test-with-args :state (lambda () ,@body)))

(defun contexture-test-with-args (args function)
  "Call FUNCTION in a new directory, with ARGS for the server.
`:state' stands for a state folder in that directory."
  (let* ((contexture-test-directory (file-name-as-directory
                                     (file-truename (make-temp-file "contexture" t))))
         (default-directory contexture-test-directory)
         (contexture--connection nil)
         (contexture-server-command contexture-test-binary)
         (contexture-server-args
          (if (eq args :state)
              (list "--state" (concat contexture-test-directory "state"))
            args))
         (contexture-reconnect-delay 0.02)
         (contexture-scope 'buffer)
         (contexture--last-manager nil)
         (contexture--totals (make-hash-table :test #'equal))
         (contexture--project-roots (make-hash-table :test #'equal))
         (contexture-notification-functions nil)
         (contexture-connected-hook nil)
         (process-environment
          (append (list (concat "XDG_RUNTIME_DIR=" contexture-test-directory)
                        (concat "XDG_CONFIG_HOME=" contexture-test-directory "config"))
                  process-environment))
         (inhibit-message t)
         (kill-ring nil)
         (buffers (buffer-list)))
    (unwind-protect (funcall function)
      (contexture-disconnect)
      (contexture-test--kill-new-buffers buffers)
      (delete-directory contexture-test-directory t))))

(defun contexture-test--kill-new-buffers (buffers)
  "Kill the buffers that are not among BUFFERS."
  (dolist (buffer (buffer-list))
    (unless (or (memq buffer buffers)
                (not (buffer-live-p buffer)) ; its base buffer was killed
                (string-prefix-p " " (buffer-name buffer)))
      (with-current-buffer buffer (set-buffer-modified-p nil))
      (kill-buffer buffer))))

(defmacro contexture-test-as-other-emacs (other &rest body)
  "Run BODY with the connection kept in the variable OTHER."
  (declare (indent 1) (debug t))
  `(let ((contexture--connection ,other)
         (contexture--request-key-prefix "other"))
     (unwind-protect (progn ,@body)
       (setq ,other contexture--connection))))

(defun contexture-test-file (name &rest lines)
  "Write LINES to the file NAME in the test's directory; return its full name."
  (let ((file (expand-file-name name contexture-test-directory)))
    (make-directory (file-name-directory file) t)
    (write-region (mapconcat (lambda (line) (concat line "\n")) lines "")
                  nil file nil 'silent)
    file))

(defmacro contexture-test-visiting (file &rest body)
  "Run BODY in a buffer that visits FILE."
  (declare (indent 1) (debug t))
  `(let ((buffer (find-file-noselect ,file)))
     (save-window-excursion
       (with-current-buffer buffer ,@body))))

(defun contexture-test-items (&optional manager)
  "Return the items of MANAGER, the current buffer's unless given."
  (contexture-request
   'get-context (list :manager (or manager (contexture-current-manager)))))

(defun contexture-test-settle ()
  "Wait until no call is unanswered and nothing is left to run."
  (contexture-test-until
   (and (zerop (hash-table-count (oref (contexture-current-connection) unanswered)))
        (not (cl-some (lambda (timer)
                        (memq (timer--function timer)
                              '(contexture--hand-on-news
                                contexture--tell-added run-hooks)))
                      timer-list))))
  (contexture-request 'ping)
  (accept-process-output nil 0.001))

(defun contexture-test-only-item (&optional manager)
  "Return the one item of MANAGER, the current buffer's unless given."
  (let ((items (contexture-test-items manager)))
    (should (= (length items) 1))
    (car items)))

(defun contexture-test-metadata (item &rest keys)
  "Return what ITEM's metadata has under KEYS."
  (mapcar (lambda (key) (plist-get (plist-get item :metadata) key)) keys))

(defmacro contexture-test-message (regexp &rest body)
  "Run BODY and wait for a message that REGEXP matches; return it."
  (declare (indent 1) (debug t))
  `(let ((start (with-current-buffer (messages-buffer) (point-max-marker))))
     ,@body
     (contexture-test--until
      (lambda () (contexture-test--message-after start ,regexp))
      ',regexp)))

(defun contexture-test--message-after (start regexp)
  "Return the first message after START that REGEXP matches."
  (with-current-buffer (messages-buffer)
    (save-excursion
      (goto-char start)
      (when (re-search-forward regexp nil t)
        (buffer-substring-no-properties (line-beginning-position)
                                        (line-end-position))))))

(defmacro contexture-test-user-error (regexp &rest body)
  "Check that BODY ends in a `user-error' that REGEXP matches."
  (declare (indent 1) (debug t))
  `(should (string-match-p
            ,regexp (cadr (should-error (progn ,@body) :type 'user-error)))))

(defun contexture-test-process ()
  "Return the process of the connection in use."
  (oref contexture--connection process))

(defun contexture-test-kill-server ()
  "Kill the server as `kill -9' does, leaving Emacs to find out."
  (signal-process (contexture-test-process) 'SIGKILL))

(provide 'contexture-test-helper)
;;; contexture-test-helper.el ends here
