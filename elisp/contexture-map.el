;;; contexture-map.el --- The map of a project  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Shows the files and definitions of a project that matter for a task, as
;; the server ranks them, and adds them to a context.  Unsaved buffers of the
;; project count as they are.  Emacs never waits for a map.

;;; Code:

(require 'cl-lib)
(require 'outline)
(require 'contexture)
(eval-when-compile (require 'subr-x))

(defcustom contexture-map-tokens 4096
  "Maximum number of tokens of a map."
  :type '(integer :match (lambda (_ value) (and (integerp value) (<= 64 value 200000))))
  :group 'contexture)

(defconst contexture-map-buffer "*contexture: map*"
  "Name of the buffer that shows the map of a project.")

(defconst contexture-map--longest-text (* 1024 1024)
  "Maximum number of characters of an unsaved buffer that counts.")

(defconst contexture-map--longest-line 400
  "Maximum width of a name or signature that is shown, in columns.")

(defvar contexture-map-history nil
  "Minibuffer history of tasks and questions for maps.")

(defvar-local contexture-map--params nil
  "Parameters of the map shown, a plist for `repo-map'.")

(defvar-local contexture-map--context nil
  "Buffer to whose context commands in this buffer add.")

(defvar-local contexture-map--asked 0
  "Number of the last request of this buffer.")

(defvar contexture-map-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-map-visit)
    (define-key map (kbd "TAB") #'contexture-map-toggle)
    (define-key map (kbd "<backtab>") #'contexture-map-toggle-all)
    (define-key map "a" #'contexture-map-add)
    (define-key map "n" #'next-line)
    (define-key map "p" #'previous-line)
    (define-key map (kbd "M-n") #'outline-next-visible-heading)
    (define-key map (kbd "M-p") #'outline-previous-visible-heading)
    (define-key map "?" #'describe-mode)
    map)
  "Keymap of `contexture-map-mode'.")

(define-derived-mode contexture-map-mode special-mode "Map"
  "Major mode for the map of a project.
\\<contexture-map-mode-map>\
\\[contexture-map-visit] goes to the file or definition at point,
\\[contexture-map-add] adds it to the context.
\\[contexture-map-toggle] folds the definitions of a file, \\[contexture-map-toggle-all] those of all files.
\\[revert-buffer] makes the map again.

See Info node `(contexture)The map'.

\\{contexture-map-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local truncate-lines t
              outline-regexp "[^ \n]"
              outline-level (lambda () 1)
              revert-buffer-function (lambda (&rest _) (contexture-map--request)))
  (outline-minor-mode))

;;; Commands

;;;###autoload
(defun contexture-map (&optional query)
  "Show the map of the project around this buffer.
With a prefix argument, ask for QUERY, a task or question; the map then
shows what matters for it.  What this buffer's file uses, and what uses
it, comes first."
  (interactive (list (contexture-map--read-query)))
  (let ((params (contexture-map--task query))
        (context (contexture--asking-buffer)))
    (with-current-buffer (get-buffer-create contexture-map-buffer)
      (unless (derived-mode-p 'contexture-map-mode)
        (contexture-map-mode))
      (setq contexture-map--params params
            contexture-map--context context)
      (contexture-map--request)
      (pop-to-buffer (current-buffer)))))

;;;###autoload
(defun contexture-add-map (&optional query)
  "Add the map of the project around this buffer to the buffer's context.
QUERY is as for `contexture-map'.  The item is a copy: it does not follow
the project."
  (interactive (list (contexture-map--read-query)))
  (let ((params (contexture-map--task query))
        (buffer (contexture--asking-buffer)))
    (contexture--request-patiently
     'repo-map `(,@params ,@(contexture-map--buffers (plist-get params :project)))
     :success
     (lambda (map)
       (with-current-buffer (if (buffer-live-p buffer) buffer (current-buffer))
         (contexture--add
          (list :content (plist-get map :text) :type :text
                :metadata (list :project (plist-get params :project)))))))))

(defun contexture-map-visit ()
  "Go to the file or definition at point."
  (interactive)
  (pcase-let* ((`(,path ,line . ,_) (contexture-map--at-point))
               (root (plist-get contexture-map--params :project))
               (file (contexture--outside-file path root root))
               (buffer (and file (file-regular-p file) (contexture--visit-outside file))))
    (unless buffer
      (contexture--user-error "%s is not there, or leads out of the project" path))
    (pop-to-buffer buffer)
    (when line
      (let ((position (contexture--widened (contexture--line-position line))))
        (unless (<= (point-min) position (point-max))
          (widen))
        (push-mark nil t)
        (goto-char position)))))

(defun contexture-map-add ()
  "Add the file or definition at point to the context."
  (interactive)
  (pcase-let* ((`(,path ,line ,end) (contexture-map--at-point))
               (root (plist-get contexture-map--params :project))
               (file (contexture--outside-file path root root)))
    (unless file
      (contexture--user-error "%s is not there, or leads out of the project" path))
    (with-current-buffer (if (buffer-live-p contexture-map--context) contexture-map--context
                           (current-buffer))
      (contexture-add-file file line end))))

(defun contexture-map-toggle ()
  "Show or hide the definitions of the file at point."
  (interactive)
  (save-excursion
    (outline-back-to-heading)
    (outline-toggle-children)))

(defun contexture-map-toggle-all ()
  "Show or hide the definitions of all files."
  (interactive)
  (if (cl-loop for position from (point-min) below (point-max)
               thereis (outline-invisible-p position))
      (outline-show-all)
    (outline-hide-body)))

;;; A map

(defun contexture-map--read-query ()
  "Return the task that the user names if a prefix argument is given, or nil."
  (and current-prefix-arg
       (let ((query (read-string "Map for the task or question: " nil
                                 'contexture-map-history)))
         (and (not (equal query "")) query))))

(defun contexture-map--task (query)
  "Return parameters for the map of the project around this buffer for QUERY."
  (contexture--in-asking-buffer
    (let ((root (or (contexture--project-root)
                    (user-error "This buffer belongs to no project")))
          (file (buffer-file-name)))
      (contexture--plist :project root :query query :max-tokens contexture-map-tokens
                         :focus (and file (not (contexture-outside--taken-p file))
                                     (list (expand-file-name file)))))))

(defun contexture-map--buffers (root)
  "Return the parameter with the unsaved buffers of files below ROOT, or nil."
  (let ((held (cl-remove-if-not
               (lambda (buffer)
                 (and (buffer-modified-p buffer)
                      (<= (buffer-size buffer) contexture-map--longest-text)))
               (contexture--project-buffers root))))
    (when held
      (list :buffers
            (mapcar (lambda (buffer)
                      (with-current-buffer buffer
                        (list :path (expand-file-name buffer-file-name)
                              :content (contexture--widened
                                         (buffer-substring-no-properties (point-min) (point-max))))))
                    held)))))

(defun contexture-map--request ()
  "Ask for the map of this buffer, and show it when it comes."
  (let* ((buffer (current-buffer))
         (number (cl-incf contexture-map--asked))
         (root (plist-get contexture-map--params :project)))
    (contexture--request-patiently
     'repo-map `(,@contexture-map--params :format :entries ,@(contexture-map--buffers root))
     :success (lambda (map)
                (contexture--with-live-buffer buffer
                  ;; An answer to an earlier request is out of date.
                  (when (= number contexture-map--asked)
                    (contexture-map--show map)))))))

(defun contexture-map--show (map)
  "Show MAP, the answer of `repo-map', in this buffer."
  (let ((inhibit-read-only t)
        (line (line-number-at-pos)))
    (erase-buffer)
    (mapc #'contexture-map--insert (plist-get map :entries))
    (goto-char (point-min))
    (forward-line (1- line))
    (setq header-line-format (contexture--header-line (contexture-map--heading map))))
  (set-buffer-modified-p nil))

(defun contexture-map--heading (map)
  "Return a phrase about MAP: what it shows, and what it leaves out."
  (let ((query (plist-get contexture-map--params :query)))
    (format "%s: %d of %d files, %d tokens%s%s"
            (contexture--abbreviate (plist-get map :project))
            (plist-get map :files) (plist-get map :total-files) (plist-get map :tokens)
            (if (zerop (plist-get map :commits)) ", no history" "")
            (if query (format ", for: %s" query) ""))))

(defun contexture-map--text (text)
  "Return TEXT, a name or signature from the server, as it is shown on a line."
  (contexture--cut (if (stringp text) text "?") contexture-map--longest-line))

(defun contexture-map--insert (entry)
  "Insert ENTRY, a file of a map, with its definitions.
Leave out what has no name or no line."
  (let ((path (plist-get entry :path))
        (known (plist-get entry :known)))
    (when (stringp path)
      (insert (propertize (contexture-map--text path)
                          'face 'bold 'contexture-map (list path nil nil))
              (if (or (eq known :whole) (not (keywordp known))) ""
                (propertize (format "  (%s)" (contexture-map--text
                                              (substring (symbol-name known) 1)))
                            'face 'shadow))
              "\n")
      (dolist (definition (cl-remove-if-not #'consp (ensure-list (plist-get entry :definitions))))
        (let ((line (plist-get definition :line))
              (end (plist-get definition :end-line)))
          (when (and (natnump line) (natnump end))
            (insert (propertize (format " %5d %s" line
                                        (contexture-map--text (plist-get definition :signature)))
                                'contexture-map (list path line end))
                    "\n")))))))

(defun contexture-map--at-point ()
  "Return (PATH LINE END) of the file or definition at point."
  (or (get-text-property (line-beginning-position) 'contexture-map)
      (user-error "No file or definition here")))

(provide 'contexture-map)

;;; contexture-map.el ends here
