;;; contexture-info.el --- Show the server in use  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-info' shows the server that this Emacs is connected to,
;; and what it holds.  It shows answers as they come; it starts no server
;; and never waits.

;;; Code:

(require 'contexture)
(require 'contexture-call)
(require 'contexture-probe)

(declare-function contexture-doctor "contexture-doctor" (&optional address))
(defvar contexture-doctor-timeout)

(defconst contexture-info-buffer "*contexture: info*"
  "Name of the buffer that shows the server in use.")

(defvar contexture-info-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "d" #'contexture-doctor)
    map)
  "Keymap of `contexture-info-mode'.")

(define-derived-mode contexture-info-mode special-mode "Contexture-Info"
  "Major mode for what `contexture-info' shows.
\\<contexture-info-mode-map>\\[revert-buffer] asks again, and \
\\[contexture-doctor] checks the set-up.

\\{contexture-info-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local truncate-lines t
              revert-buffer-function (lambda (&rest _) (contexture-info--ask))))

;;;###autoload
(defun contexture-info ()
  "Show the server that this Emacs is connected to, and its contents."
  (interactive)
  (pop-to-buffer (get-buffer-create contexture-info-buffer))
  (unless (derived-mode-p 'contexture-info-mode)
    (contexture-info-mode))
  (contexture-info--ask))

(defun contexture-info--ask ()
  "Ask the server about itself, and show its answer."
  (require 'contexture-doctor)          ; for `contexture-doctor-timeout'
  (let ((buffer (current-buffer)))
    (if (not (contexture-running-p))
        (contexture-info--show (contexture-info--unconnected))
      (contexture-info--show "Asking the server...\n")
      (contexture--probe-connection
       contexture-doctor-timeout
       (lambda (outcome value)
         (if (eq outcome 'answered)
             (contexture-request-async
              'list-managers nil
              :success (lambda (managers)
                         (contexture-info--show-in
                          buffer (contexture-info--text value managers))))
           (contexture-info--show-in
            buffer (substitute-command-keys
                    "The server does not answer.\n
\\<contexture-info-mode-map>\\[contexture-doctor] looks for the reason.\n"))))))))

(defun contexture-info--unconnected ()
  "Return the text to show when there is no connection."
  (substitute-command-keys
   (concat (if contexture--connection
               (contexture--format "The server cannot be reached: %s.\n"
                                   (or (oref contexture--connection reason)
                                       "no answer yet"))
             "This Emacs is not connected; the first command connects it.\n")
           "\n\\<contexture-info-mode-map>\\[contexture-doctor] checks the \
set-up.\n")))

(defun contexture-info--show-in (buffer text)
  "Show TEXT in BUFFER, if BUFFER is still live."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer (contexture-info--show text))))

(defun contexture-info--show (text)
  "Show TEXT in this buffer."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (insert text)
    (goto-char (point-min))))

;;;; The text

(defun contexture-info--text (info managers)
  "Return the text for INFO, from `server-info', and MANAGERS."
  (concat
   (mapconcat (lambda (row)
                (format "%s %s\n" (propertize (format "%-15s" (car row)) 'face 'bold)
                        (contexture--visible (cdr row))))
              (contexture-info--rows info managers) "")
   (if managers "\n" "")
   (contexture-info--managers managers)))

(defun contexture-info--rows (info managers)
  "Return pairs of a label and a value for INFO and MANAGERS."
  (let ((pid (plist-get info :pid)))
    `(("Server" . ,(format "%s %s" (plist-get info :name) (plist-get info :version)))
      ("Process" . ,(if-let* ((seconds (contexture-info--uptime pid)))
                        (format "%s, up %s" pid seconds)
                      (format "%s" pid)))
      ("Connected" . ,(contexture-info--transport pid))
      ("State" . ,(if-let* ((folder (plist-get info :state)))
                      (abbreviate-file-name folder)
                    "not saved"))
      ("Tokens" . ,(format "counted by %s"
                           (contexture--name (plist-get info :token-counter))))
      ("Capacity" . ,(format "%s for each context, %d for those of projects, files \
and sessions"
                             (contexture--count
                              (plist-get (plist-get info :limits) :max-items)
                              "item")
                             contexture--max-items))
      ("Contexts" . ,(contexture-info--sums managers)))))

(defun contexture-info--transport (pid)
  "Return a phrase for the connection to the server with process PID."
  (pcase (oref contexture--connection target)
    (`(:unix ,path) (format "through the socket %s" (abbreviate-file-name path)))
    (`(:tcp ,host ,port) (format "by TCP, %s:%d" host port))
    (`(,program . ,_)
     (let ((own (process-id (oref contexture--connection process))))
       ;; In a batch Emacs, a shell stands between.
       (if (memq own (list pid (alist-get 'ppid (process-attributes pid))))
           (format "through a pipe; this Emacs started %s"
                   (abbreviate-file-name program))
         (format "through process %s, to a server that runs already" own))))))

(defun contexture-info--uptime (pid)
  "Return the running time of process PID as text, or nil if unknown."
  (when-let* ((elapsed (and (not (keywordp (car (oref contexture--connection target))))
                            (alist-get 'etime (process-attributes pid)))))
    (format-seconds "%dd %hh %mm %z%ss" elapsed)))

(defun contexture-info--sums (managers)
  "Return a phrase for the total size of MANAGERS."
  (let ((sum (lambda (key)
               (apply #'+ (mapcar (lambda (entry) (or (plist-get entry key) 0))
                                  managers)))))
    (format "%d with %s" (length managers)
            (contexture--size (funcall sum :count) (funcall sum :tokens)))))

(defun contexture-info--managers (managers)
  "Return a table of MANAGERS, the newest first."
  (let ((sorted (sort (copy-sequence managers)
                      (lambda (a b) (> (or (plist-get a :newest) 0)
                                       (or (plist-get b :newest) 0))))))
    (mapconcat
     (lambda (entry)
       (format "%5d of %-4d %8d tokens  %s\n"
               (plist-get entry :count) (plist-get entry :max-items)
               (or (plist-get entry :tokens) 0)
               (contexture--label (plist-get entry :manager))))
     sorted "")))

(provide 'contexture-info)
;;; contexture-info.el ends here
