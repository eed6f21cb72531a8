;;; contexture-install.el --- Get the server's program  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-install-server' downloads the program of this version for
;; this system and puts it beside the package.  The package lists the
;; checksum of each program, so whoever serves the file cannot change it.
;; Where there is no program, Cargo can build one.  Everything is asked
;; before it is done, and nothing blocks Emacs.

;;; Code:

(require 'url)
(require 'contexture-connection)
(eval-when-compile (require 'subr-x))

(defvar url-http-response-status)
(defvar url-http-end-of-headers)

(defconst contexture-install--sources "https://github.com/contexture/contexture"
  "Address of the sources.")

(defvar contexture-install--releases
  (format "%s/releases/download/server-%s/" contexture-install--sources
          contexture--version)
  "Address of the folder with the programs of this version.")

(defvar contexture-install--checksums
  '(;; begin: scripts/checksums writes these
    ;; end
    )
  "Alist from systems to the SHA-256 checksums of their programs.")

(defvar contexture-install--place (expand-file-name "bin/contexture" contexture--directory)
  "File name of the program that is installed.")

(defvar contexture-install--patience 10
  "Number of seconds that a new program has to tell its version.")

(defvar contexture-install--download nil
  "Buffer of the download that is under way, or nil.")

;;;###autoload
(defun contexture-install-server (&optional build)
  "Install the server's program of this version, after asking.
Download it and compare its checksum with that in this package.  If there
is none for this system, or with a prefix argument or BUILD, build it with
Cargo."
  (interactive "P")
  (let* ((system (contexture-install--system system-configuration))
         (checksum (cdr (assoc system contexture-install--checksums))))
    (cond (build (contexture-install--offer-cargo nil))
          ((not checksum)
           (contexture-install--offer-cargo
            (format "There is no program of Contexture %s for %s.  "
                    contexture--version (or system system-configuration))))
          ((and (buffer-live-p contexture-install--download)
                (not (y-or-n-p "The server is being downloaded; start again? "))))
          ((y-or-n-p (format "Download %s, check it, and install it as %s? "
                             (contexture-install--address system)
                             (abbreviate-file-name contexture-install--place)))
           (contexture-install--fetch system checksum)))))

(defun contexture-install--system (configuration)
  "Return the name of the system that CONFIGURATION describes, or nil."
  (let ((case-fold-search nil))
    (when (string-match "\\`\\([^-]+\\)-.*\\(linux\\|darwin\\)" configuration)
      (concat (match-string 1 configuration) "-" (match-string 2 configuration)))))

(defun contexture-install--address (system)
  "Return the address of the program for SYSTEM."
  (format "%scontexture-%s-%s" contexture-install--releases contexture--version system))

;;;; Downloading

(defun contexture-install--fetch (system checksum)
  "Download the program for SYSTEM; install it if it has CHECKSUM."
  (contexture-install--stop)
  (contexture--message "Downloading Contexture's server…")
  (setq contexture-install--download
        (url-retrieve (contexture-install--address system)
                      #'contexture-install--fetched (list checksum) t t)))

(defun contexture-install--stop ()
  "Stop the download that is under way, if there is one."
  (when (buffer-live-p contexture-install--download)
    (when-let* ((process (get-buffer-process contexture-install--download)))
      (set-process-sentinel process #'ignore)
      (delete-process process))
    (kill-buffer contexture-install--download))
  (setq contexture-install--download nil))

(defun contexture-install--fetched (status checksum)
  "Install what this buffer has if it has CHECKSUM.
STATUS is that of `url-retrieve'."
  (let ((problem (contexture-install--problem status checksum)))
    (unless problem
      (setq problem (contexture-install--write (contexture-install--body) (point-max))))
    (contexture-install--stop)
    (if problem
        (contexture-install--fail problem)
      (contexture-install--try))))

(defun contexture-install--problem (status checksum)
  "Return why this buffer is not the program with CHECKSUM, or nil.
STATUS is that of `url-retrieve'."
  (cond ((plist-get status :error)
         (format "The download failed: %s"
                 (if (and url-http-response-status (>= url-http-response-status 400))
                     (format "the web server answered %s" url-http-response-status)
                   (contexture-install--reason (plist-get status :error)))))
        ((not url-http-end-of-headers) "The download failed: the answer was cut off")
        ((not (equal checksum
                     (secure-hash 'sha256 (current-buffer)
                                  (contexture-install--body) (point-max))))
         "The downloaded file is damaged or altered: its checksum is wrong")))

(defun contexture-install--reason (problem)
  "Return a phrase for PROBLEM, an error of `url-retrieve'."
  (pcase problem
    (`(error connection-failed ,reason . ,_) (string-trim reason))
    (_ (error-message-string problem))))

(defun contexture-install--body ()
  "Return the position after the headers of an answer."
  (min (point-max) (1+ url-http-end-of-headers)))

(defun contexture-install--new ()
  "Return the file name under which a program is tried."
  (concat contexture-install--place ".new"))

(defun contexture-install--write (start end)
  "Write the text from START to END as a program to be tried.
Return why that failed, or nil."
  (condition-case problem
      (let ((coding-system-for-write 'no-conversion)
            (file (contexture-install--new)))
        (make-directory (file-name-directory file) t)
        (write-region start end file nil 'silent)
        (set-file-modes file #o755)
        nil)
    (file-error (error-message-string problem))))

(defun contexture-install--try ()
  "Ask the new program for its version, and put it in place if it answers."
  (let ((new (contexture-install--new)))
    (contexture--probe-program
     (list new "--version") contexture-install--patience
     (lambda (status output)
       (if (and (eq status 0) (string-prefix-p "contexture " output))
           (contexture-install--put new)
         (delete-file new)
         (contexture-install--fail
          (format "The downloaded program does not run here: %s"
                  (if (eq status 0) (string-trim output) status))))))))

(defun contexture-install--put (new)
  "Put the program NEW in its place, and say so."
  (rename-file new contexture-install--place t)
  (contexture--message
   "Installed Contexture's server: %s%s"
   (abbreviate-file-name contexture-install--place)
   (cond (contexture-server-command "; set `contexture-server-command' to nil to use it")
         ((contexture-running-p) "; M-x contexture-disconnect ends the old one")
         (t ""))))

(defun contexture-install--fail (problem)
  "Say PROBLEM, and what else can be done."
  (contexture--message "%s; nothing was installed%s" problem
                       (if (executable-find "cargo")
                           "; C-u M-x contexture-install-server builds it with Cargo"
                         "")))

;;;; Building

(defun contexture-install--offer-cargo (reason)
  "Say REASON, a sentence or nil, and offer to build the program with Cargo."
  (unless (executable-find "cargo")
    (contexture--user-error
     "%sTo build it, install Rust from https://rustup.rs, then try again" (or reason "")))
  (let ((command (format "cargo install --locked --git %s --tag server-%s contexture"
                         contexture-install--sources contexture--version)))
    (when (y-or-n-p (format "%sRun `%s'? " (or reason "") command))
      (let ((default-directory (expand-file-name "~/")))
        (compilation-start command nil (lambda (_) "*contexture: cargo*"))))))

(provide 'contexture-install)
;;; contexture-install.el ends here
