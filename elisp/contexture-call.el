;;; contexture-call.el --- One call on a connection  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The part of contexture-rpc.el that needs the connection itself, and
;; with it jsonrpc.el: making a call, waiting for its answer, cancelling
;; it, and joining another server.  The first call loads it, so that
;; loading the package costs next to nothing.

;;; Code:

(require 'jsonrpc)
(require 'contexture-rpc)
(require 'contexture-connection)

(declare-function contexture-live--push "contexture-live" ())

;;;; A call

(defun contexture--call (connection method params success failure)
  "Call METHOD with PARAMS on CONNECTION and return the call's id.
SUCCESS or FAILURE is called from the filter.  If METHOD shows or sends
items, the server is first told what changed in their buffers."
  (when (and (bound-and-true-p contexture-live--buffers)
             (memq method contexture--showing-methods)
             (eq connection contexture--connection))
    (contexture-live--push))
  (jsonrpc-async-request
   connection method params
   :timeout nil :success-fn success :error-fn failure)
  (oref connection last-id))

(defun contexture--wait (connection timeout done)
  "Wait until DONE returns non-nil, at most TIMEOUT seconds.
Signal `contexture-error' if it does not.  CONNECTION's process is
watched, so that its answer ends the wait at once."
  (let ((end (+ (float-time) timeout))
        (read-process-output-max (max read-process-output-max 1048576)))
    (with-local-quit
      (while (not (funcall done))
        (let ((process (oref connection process))
              (left (- end (float-time))))
          (when (<= left 0)
            (signal 'contexture-error
                    (list (contexture--timeout-text connection timeout))))
          (if (and process (memq (process-status process) '(run open)))
              (accept-process-output process (min left 0.5))
            (accept-process-output nil (min left 0.05))))))))

(defun contexture--timeout-text (connection timeout &optional option)
  "Return the message that CONNECTION was silent for TIMEOUT seconds.
OPTION is the option that sets TIMEOUT, by default
`contexture-request-timeout'."
  (if (jsonrpc-running-p connection)
      (format "no answer within %s s (see `%s')" timeout
              (or option 'contexture-request-timeout))
    (contexture--format "cannot reach the server: %s"
                        (or (oref connection reason)
                            (format "no answer within %s s" timeout)))))

(defun contexture--cancel (connection id)
  "Forget CONNECTION's call ID, and ask the server to stop it."
  (let ((waiting (assq id (oref connection outbox))))
    (contexture--settle connection id '(:code -32800 :message "cancelled"))
    (when (and (jsonrpc-running-p connection) (not waiting))
      (jsonrpc-notify connection 'cancel (list :id id)))))

;;;; Joining and leaving

;;;###autoload
(defun contexture-connect (address)
  "Join the server at ADDRESS instead of running one.
ADDRESS is the path of a Unix socket, or HOST:PORT."
  (interactive
   (let ((default (contexture--running-socket)))
     (contexture--confirm-leaving)
     (list (read-string (format-prompt "Server (socket path or HOST:PORT)" default)
                        nil 'contexture-connect-history default))))
  (let ((connection (contexture--new-connection
                     (contexture--parse-address address))))
    (contexture-disconnect)
    (setq contexture--connection connection)
    (contexture--start connection)
    (condition-case problem
        (contexture--wait connection contexture-request-timeout
                          (lambda () (memq (oref connection state) '(ready down))))
      (contexture-error (oset connection reason (cadr problem))))
    (unless (jsonrpc-running-p connection)
      (contexture-disconnect)
      (contexture--user-error "Cannot reach %s: %s" address (oref connection reason)))
    (contexture--message "Connected to %s (version %s)" address
             (plist-get (oref connection info) :version))))

(defvar contexture-connect-history nil
  "History of addresses to connect to.")

(defun contexture--running-socket ()
  "Return the socket of the server that owns the default state folder, or nil."
  (cdr (contexture--server-note (contexture--usual-state-folder))))

(defun contexture--usual-state-folder ()
  "Return the folder in which a server keeps its state by default."
  (expand-file-name "contexture" (or (getenv "XDG_STATE_HOME") "~/.local/state")))

(defun contexture--server-note (folder)
  "Return (PID . SOCKET) of the server that owns the state FOLDER, or nil.
Both are in the file that the server writes in FOLDER.  SOCKET is nil if
the server listens on none."
  (let ((note (expand-file-name "server" folder)))
    (when (file-readable-p note)
      (with-temp-buffer
        (insert-file-contents note)
        (let ((lines (split-string (buffer-string) "\n")))
          (cons (string-to-number (car lines))
                (unless (member (cadr lines) '(nil "")) (cadr lines))))))))

(defun contexture--parse-address (address)
  "Return the target that ADDRESS, typed by the user, stands for."
  (if (string-match "\\`\\[?\\([^][/]+?\\)\\]?:\\([0-9]+\\)\\'" address)
      (list :tcp (match-string 1 address)
            (string-to-number (match-string 2 address)))
    (list :unix (expand-file-name address))))

(defun contexture--confirm-leaving ()
  "Ask for confirmation if calls are unanswered and would be lost."
  (when contexture--connection
    (let ((waiting (hash-table-count (oref contexture--connection unanswered))))
      (unless (or (= waiting 0)
                  (y-or-n-p (contexture--format "Discard %s that the server has not answered? "
                                    (contexture--count waiting "call"))))
        (user-error "Still connected")))))

(provide 'contexture-call)
;;; contexture-call.el ends here
